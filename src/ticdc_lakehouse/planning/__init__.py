"""What a window does to each table, decided before anything is written: pure, no Spark.

The TSOs of one table in the window (W_prev, W], in the usual order:

    ──┼──────────────┼──────────────────┼──────────────────┼─────────────┼──────────────────┼──▶ commit_ts
      named_at       since              applied_tso        W_prev        planned_through    W
                     empty_at           complete_through   named_until
                     mergeable_since

`Definition`: the newest one at a commit_ts. Its ``commit_ts`` is that of the DDL that changed the table last, or of the
export or first row that it was read from. `segments.define` makes it; `TablePlanBuilder.rename`, `alter` and `exchange`
replace it.

    named_at          rows of the table's name are its own after it: its CREATE, TRUNCATE or RENAME; 0 if always
    since             all rows after it have this definition: its commit_ts if a DDL or an export defines it, else 0
    empty_at          a new table with this definition is empty at it: its commit_ts, less 1 if rows define it
    mergeable_since   the later of `since` and `named_at`: late rows after it can be merged

`Published` and `TableState`: what the window before published.

    W_prev            `Published.tso`: the published watermark
    applied_tso       the table includes all changes up to it: W_prev, or less if the table is blocked

`TablePlanBuilder`: the plan of the table. `published_builder` makes it, or `WindowTables` for a new table.

    complete_through  the plan begins after it: `applied_tso`, or less if the table goes back for late changes; of a new
                      table its DDL, or W_prev
    planned_through   the steps planned so far lead to it: each step that is added moves it on
    named_until       only of a table without columns and rows, W_prev: its name already follows from the DDLs below it

`PlanningInput`: what gold plans with.

    W                 `PlanningInput.tso`: the watermark to publish. `segments.merge_rest` moves `planned_through`
                      to it, or to the TSO at which the table is blocked
"""
