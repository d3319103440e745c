// Restore reads SQL texts, a JSON string a line, and writes each as TiCDC sends it: TiDB's parser writes it anew, with the
// flags of tiflow's addSpecialComment (cdc/owner/ddl_sink.go; docs/wire.md 2.4). A text that the parser refuses is null.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/format"
	_ "github.com/pingcap/tidb/pkg/types/parser_driver"
)

const flags = format.RestoreTiDBSpecialComment | format.RestoreNameBackQuotes | format.RestoreKeyWordUppercase |
	format.RestoreStringSingleQuotes | format.SkipPlacementRuleForRestore | format.RestoreWithTTLEnableOff

func restored(text string) *string {
	statements, _, err := parser.New().Parse(text, "", "")
	if err != nil || len(statements) != 1 {
		return nil
	}
	var found strings.Builder
	if statements[0].Restore(format.NewRestoreCtx(flags, &found)) != nil {
		return nil
	}
	text = found.String()
	return &text
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<26)
	answers := json.NewEncoder(os.Stdout)
	answers.SetEscapeHTML(false)
	for lines.Scan() {
		var text string
		if err := json.Unmarshal(lines.Bytes(), &text); err != nil {
			panic(err)
		}
		if err := answers.Encode(restored(text)); err != nil {
			panic(err)
		}
	}
}
