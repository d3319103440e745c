"""Texts that random statements are made of: names, types, columns, table options, partitions, changes, values."""

from __future__ import annotations

from collections.abc import Sequence

DATABASES = ("Oracle_Main", "oracle_Side", "dotless.ı Σ`x")  # noqa: RUF001
DML = ("INSERT", "REPLACE", "UPDATE", "DELETE")
STRICT = ("DEFAULT", "DEFAULT", "'STRICT_TRANS_TABLES'", "'STRICT_ALL_TABLES,NO_ZERO_DATE'")
LENIENT = ("''", "''", "'ALLOW_INVALID_DATES'", "'NO_ZERO_DATE'")
MODES = {"strict": STRICT, "lenient": LENIENT, "mixed": STRICT + LENIENT}
"""Values of sql_mode that a session has, one after the other."""
ZONES = ("+00:00", "Asia/Shanghai", "America/New_York", "+05:30")
FIRST = (
    "CREATE SEQUENCE sq",
    "CREATE TABLE Users (Id INT PRIMARY KEY, `Name` VARCHAR(20) NOT NULL DEFAULT 'x', Created TIMESTAMP DEFAULT"
    " CURRENT_TIMESTAMP)",
    "CREATE TABLE orders (id BIGINT UNSIGNED AUTO_INCREMENT, uid INT, amt DECIMAL(10,2) DEFAULT 0, PRIMARY KEY (id)"
    " NONCLUSTERED, KEY k_uid (uid))",
    "CREATE TABLE `Log Lines` (at DATETIME(3) NOT NULL, msg TEXT, lvl ENUM('info','WARN','err'), n INT NOT NULL,"
    " UNIQUE (at), UNIQUE KEY (n, at))",
    "CREATE TABLE parts (id INT, v VARCHAR(10), PRIMARY KEY(id)) PARTITION BY RANGE(id) (PARTITION P0 VALUES LESS THAN"
    " (10), PARTITION p1 VALUES LESS THAN (20), PARTITION pM VALUES LESS THAN MAXVALUE)",
    "CREATE TABLE days (d DATE NOT NULL, n INT NOT NULL, v TEXT, PRIMARY KEY(d, n)) PARTITION BY RANGE (YEAR(d))"
    " (PARTITION y19 VALUES LESS THAN (2019), PARTITION y24 VALUES LESS THAN (2024))",
    "CREATE TABLE listed (a INT NOT NULL, b VARCHAR(5), UNIQUE KEY (a)) PARTITION BY LIST (a) (PARTITION pa VALUES IN"
    " (1,2,3), PARTITION pb VALUES IN (4,5), PARTITION pd DEFAULT)",
    "CREATE TABLE hashed (k VARCHAR(20) COLLATE utf8mb4_general_ci, v INT, PRIMARY KEY(k)) PARTITION BY KEY(k)"
    " PARTITIONS 3",
    "CREATE TABLE `h'4` (a INT, b BIGINT, c CHAR(3), PRIMARY KEY(a)) PARTITION BY HASH(a) PARTITIONS 4",
    "CREATE TABLE oracle_Side.Codes (a INT, b INT, c CHAR(5), j JSON, PRIMARY KEY(a,b))",
    'CREATE TABLE oracle_Side.`ünï "q" .İ` (`Ας` VARBINARY(8) NOT NULL, t TIMESTAMP(6) NULL, y YEAR, tm TIME(2),'
    " f FLOAT, s SET('x','y','z'), UNIQUE KEY u (`Ας`))",
    "CREATE TABLE nokey (a INT, b DOUBLE, c BIT(9))",
    "CREATE TABLE prefixed (t VARCHAR(20), b BLOB, n INT, PRIMARY KEY (t(3)), UNIQUE KEY ub (b(2)), KEY (t(2) DESC))",
    "CREATE TABLE made (id INT PRIMARY KEY, a INT NOT NULL DEFAULT 1, s INT AS (a*2) STORED, v INT AS (a+1) VIRTUAL NOT"
    " NULL, UNIQUE KEY uv (v), KEY ke ((a+3)), UNIQUE KEY ue ((a-3)), UNIQUE KEY us (s))",
    "CREATE TABLE /*c*/ auto (id BIGINT /*T![auto_rand] AUTO_RANDOM(5) */ PRIMARY KEY /*T![clustered_index] CLUSTERED"
    " */, f FLOAT NOT NULL, e ENUM('b','a') NOT NULL, UNIQUE KEY (e, f)) /*T! SHARD_ROW_ID_BITS=0 */ CHARSET=latin1",
    "CREATE TABLE clocks (d DATETIME(2) NOT NULL, t TIME(3) NOT NULL, y YEAR NOT NULL, s TIMESTAMP(1) NOT NULL DEFAULT"
    " '2020-01-01 00:00:00', dc DECIMAL(8,3) NOT NULL, PRIMARY KEY (dc, t, d) CLUSTERED, UNIQUE KEY (s), UNIQUE KEY"
    " (y, dc))",
    "CREATE TABLE months (d DATE, e ENUM('x','y'), n INT, PRIMARY KEY (d, n)) PARTITION BY RANGE COLUMNS (d) (PARTITION"
    " m1 VALUES LESS THAN ('2015-01-01'), PARTITION m2 VALUES LESS THAN ('2020-03-01'), PARTITION m3 VALUES LESS THAN"
    " (MAXVALUE))",
    "CREATE TABLE lists (a BIGINT, b DATE, PRIMARY KEY (a, b)) PARTITION BY LIST COLUMNS (a) (PARTITION `l 1` VALUES IN"
    " (1,3,5), PARTITION l2 VALUES IN (2,4,6,-1))",
    "CREATE TABLE byday (d DATETIME NOT NULL, n INT, KEY (n), UNIQUE KEY (d)) PARTITION BY HASH (DAYOFYEAR(d))"
    " PARTITIONS 3",
    "CREATE TABLE ordered (k INT NOT NULL, v TEXT, UNIQUE KEY (k)) PARTITION BY RANGE (k) INTERVAL (10) FIRST"
    " PARTITION LESS THAN (10) LAST PARTITION LESS THAN (30) MAXVALUE PARTITION",
    "CREATE TABLE oracle_Side.gbks (名 VARCHAR(9) NOT NULL, v CHAR(5) COLLATE utf8mb4_unicode_ci, a VARCHAR(5)"
    " CHARACTER SET ascii, PRIMARY KEY (名)) CHARACTER SET gbk COMMENT 'x'",
)

NAMES = (
    *("Qty", "ünit", "Col X", "when", "memo", "it's", 'quo"te', "back`tick", "dot.ted", "dotlessı", "ΟΔΟΣ", "İst"),  # noqa: RUF001
    *("a;b", "--c", "/*c*/", "select", "per%s", "com,ma", "(par)", "日本", "key", "First", "_ticd", "back\\slash"),
)

TYPES = (
    *("INT", "TINYINT", "SMALLINT UNSIGNED", "MEDIUMINT", "BIGINT", "BIGINT UNSIGNED", "INT(5) ZEROFILL", "INTEGER"),
    *("DECIMAL(10,2)", "DECIMAL(20)", "DECIMAL", "NUMERIC(6,3) UNSIGNED", "FLOAT", "DOUBLE", "FLOAT(7,3)", "REAL"),
    *("DOUBLE PRECISION", "BIT(4)", "BIT", "BOOL", "YEAR", "DATE", "DATETIME", "DATETIME(3)", "TIMESTAMP NULL"),
    *("TIMESTAMP(3) NULL", "TIME", "TIME(3)", "CHAR(12)", "VARCHAR(3)", "VARCHAR(30)", "VARCHAR(200)", "TEXT"),
    *("LONGTEXT", "TINYTEXT", "TEXT(300)", "BINARY(4)", "VARBINARY(30)", "BLOB", "LONGBLOB", "JSON"),
    *("ENUM('q','r')", "ENUM('info','WARN','err','a''b,c')", "SET('x','y')", "SET('x','y','z')"),
    *("VARCHAR(10) CHARACTER SET gbk", "VARCHAR(40) CHARACTER SET latin1", "VARCHAR(20) COLLATE utf8mb4_general_ci"),
    *("VARCHAR(9) CHARACTER SET binary", "DEC(5,1)", "FIXED(9,2)"),
    *("INT SIGNED", "VECTOR(2)", "CHAR(5) BINARY", "FLOAT(30)", "CHAR(6) ASCII"),
    *("NATIONAL VARCHAR(7)", "NCHAR(5)", "LONG VARCHAR", "LONG", "CHARACTER VARYING(6)", "INT8", "INT1", "MIDDLEINT"),
    *("VARCHARACTER(8)", "BOOLEAN", "YEAR(4)", "DECIMAL(65,30)", "DECIMAL(38,10)", "BIT(64)", "TINYINT(1)", "CHAR"),
    *("BIGINT(20) UNSIGNED ZEROFILL", "BINARY", "VARBINARY(1)", "CHAR(0)", "MEDIUMBLOB", "BLOB(70000)", "FLOAT(10)"),
    *("VARCHAR(8) CHARSET ascii", "CHAR(7) COLLATE utf8mb4_0900_ai_ci", "VARCHAR(7) CHARACTER SET utf8", "TIME(6)"),
    *("DATETIME(1)", "DATETIME(6)", "TIMESTAMP(1) NULL", "ENUM('r','q')", "SET('z','y','x')", "ENUM('a','A','é')"),
    *("DOUBLE(12,3)", "FLOAT UNSIGNED", "DOUBLE UNSIGNED", "DECIMAL(4,4)", "TINYINT UNSIGNED", "MEDIUMTEXT"),
    *("VARCHAR(20) COLLATE utf8mb4_unicode_ci", "TINYBLOB", "INT UNSIGNED", "SMALLINT", "DATE", "ENUM('1','2','10')"),
)

ADDED = (
    *TYPES,
    *("INT DEFAULT 7", "INT NOT NULL", "BIGINT UNSIGNED NOT NULL DEFAULT '18446744073709551615'", "INT DEFAULT -1"),
    *("DECIMAL(6,2) DEFAULT 1.005", "DECIMAL(6,2) NOT NULL", "DECIMAL(8,3) DEFAULT '-0.0004'", "FLOAT DEFAULT 0.1"),
    *("DOUBLE NOT NULL", "DOUBLE DEFAULT 1e-7", "FLOAT(7,3) DEFAULT 1.5", "INT DEFAULT 1.5", "INT DEFAULT '12'"),
    *("BIT(4) DEFAULT b'1010'", "BIT(1) NOT NULL", "BIT(12) DEFAULT 5", "BOOL DEFAULT TRUE", "YEAR NOT NULL"),
    *("YEAR DEFAULT 70", "YEAR DEFAULT '0'", "YEAR DEFAULT 2155", "DATE DEFAULT '2020-1-2'", "DATE NOT NULL"),
    *("DATE DEFAULT 20200102", "DATE DEFAULT '20-1-2'", "DATETIME(3) DEFAULT '2020-01-02 03:04:05.678999'"),
    *("DATETIME DEFAULT '2020-01-02'", "DATETIME DEFAULT CURRENT_TIMESTAMP", "DATETIME(6) NOT NULL"),
    *("TIMESTAMP NOT NULL", "TIMESTAMP DEFAULT CURRENT_TIMESTAMP", "TIMESTAMP NULL DEFAULT NULL"),
    *("TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)", "DATETIME DEFAULT NOW()"),
    *("TIMESTAMP(3) NULL DEFAULT '2024-06-01 12:34:56.789'", "TIMESTAMP DEFAULT '2024-11-03 01:30:00'"),
    *("DATETIME NOT NULL ON UPDATE CURRENT_TIMESTAMP", "TIME DEFAULT '-12:34:56'", "TIME(3) DEFAULT '1:2:3.4567'"),
    *("TIME NOT NULL", "TIME DEFAULT '12:30'", "TIME DEFAULT 123", "CHAR(4) DEFAULT 'ab  '", "CHAR(4) NOT NULL"),
    *("VARCHAR(9) DEFAULT 'ab  '", "VARCHAR(10) CHARACTER SET gbk DEFAULT '中'", r"""VARCHAR(20) DEFAULT 'dé,"q\\'"""),
    *("VARCHAR(20) DEFAULT 'it''s;'", 'VARCHAR(20) DEFAULT "d\'q"', "VARCHAR(5) DEFAULT 12", "VARCHAR(9) DEFAULT 1.50"),
    *("VARCHAR(20) DEFAULT 0x4142", "VARCHAR(20) DEFAULT b'1000001'", "VARCHAR(5) DEFAULT TRUE", "TEXT NOT NULL"),
    *("VARBINARY(4) DEFAULT x'00ff'", "VARBINARY(4) DEFAULT x'0041'", "BINARY(3) NOT NULL", "BINARY(4) DEFAULT 'ab'"),
    *("BLOB NOT NULL", "JSON NOT NULL", "JSON DEFAULT NULL", "ENUM('q','r') NOT NULL", "ENUM('q','r') DEFAULT 'R'"),
    *(
        "ENUM('a''b','c,d','é ') DEFAULT 'c,d'",
        "SET('x','y') DEFAULT 'y,x'",
        "SET('x','y') NOT NULL",
        "ENUM('1','0') DEFAULT 1",
    ),
    *("SET('x','y','z') DEFAULT 5", "VARCHAR(36) DEFAULT (UUID())", "DATE DEFAULT (CURRENT_DATE)", "VECTOR NOT NULL"),
    *("DATETIME DEFAULT (date_format(now(),'%Y-%m-%d'))", "INT UNIQUE", "INT NOT NULL PRIMARY KEY", "INT AS (1+1)"),
    *("INT GENERATED ALWAYS AS (2) STORED", "INT AS (1) VIRTUAL NOT NULL", "INT COMMENT 'a;b -- c' DEFAULT 3"),
    *(
        "INT DEFAULT 0x10",
        "INT DEFAULT 1e2",
        "INT DEFAULT +5",
        "DECIMAL(5,2) DEFAULT .5",
        "BIGINT AUTO_INCREMENT UNIQUE",
    ),
    *("INT NULL DEFAULT 4 CHECK (1)", "CHAR(5) CHARACTER SET binary DEFAULT 'a'", "VARCHAR(5) DEFAULT ''"),
    *(
        "BOOL NOT NULL DEFAULT FALSE",
        "VARCHAR(5) DEFAULT _utf8mb4'é'",
        "DOUBLE DEFAULT '1e3'",
        "FLOAT DEFAULT 16777217",
    ),
    *(
        "DATETIME DEFAULT 20200102030405",
        "TIMESTAMP NULL DEFAULT '2020-01-02T03:04:05Z'",
        "TIMESTAMP NOT NULL DEFAULT 0",
    ),
    *(
        "DATETIME(3) DEFAULT '2020-01-02 03:04:05+08:00'",
        "DATE DEFAULT '2020-01-02 03:04:05'",
        "DATE DEFAULT '0000-00-00'",
    ),
    *("TIME DEFAULT '1 02:03:04'", "TIME DEFAULT '100:00:00.5'", "TIME(2) DEFAULT 123456.789", "YEAR DEFAULT 0"),
    *("YEAR DEFAULT '00'", "YEAR DEFAULT 1901", "YEAR DEFAULT 69", "DECIMAL(5,2) DEFAULT '1e1'", "DECIMAL DEFAULT 2.5"),
    *(
        "DECIMAL(30,10) DEFAULT 12345678901234567890.123456789",
        "BIGINT DEFAULT -9223372036854775808",
        "INT DEFAULT ' 5'",
    ),
    *("FLOAT DEFAULT 3.4e38", "FLOAT DEFAULT -0.0", "DOUBLE DEFAULT 1e300", "DOUBLE DEFAULT 123456789012345678"),
    *(
        "FLOAT DEFAULT 1e-40",
        "DOUBLE(8,2) DEFAULT 1.005",
        "FLOAT DEFAULT 0.1e1",
        "DOUBLE DEFAULT .5",
        "DOUBLE DEFAULT 5.",
    ),
    *("BIT(64) DEFAULT 0xFFFFFFFFFFFFFFFF", "BIT(10) DEFAULT 'a'", "BIT(3) DEFAULT 0b101", "BIT(9) DEFAULT x'01ff'"),
    *("CHAR(3) DEFAULT ' a '", "BINARY(3) DEFAULT 'é'", "BINARY(2) DEFAULT ''", "VARBINARY(5) DEFAULT 12"),
    *(
        "ENUM('q','r') DEFAULT 2",
        "ENUM('q','r') NOT NULL DEFAULT 'r'",
        "SET('x','y') DEFAULT ''",
        "SET('a,') DEFAULT ''",
    ),
    *("SET('x','y','z') DEFAULT 'Z,x,z'", "ENUM('A','a') COLLATE utf8mb4_bin DEFAULT 'a'", "ENUM('','b') NOT NULL"),
    *(
        r"ENUM('back\\slash','q''q') DEFAULT 'back\\slash'",
        r"ENUM('b\\s','a') NOT NULL",
        r"SET('b\\s','a') DEFAULT 'b\\s'",
    ),
    *(
        r"VARCHAR(20) DEFAULT 'a\nb\t\0'",
        r"VARCHAR(20) DEFAULT 'pct\%\_'",
        r"VARCHAR(9) DEFAULT '\\'",
        "VARCHAR(9) DEFAULT '/*!'",
    ),
    *(
        "VARCHAR(9) DEFAULT 'a' 'b'",
        "VARCHAR(9) DEFAULT N'é'",
        "VARCHAR(9) DEFAULT _binary'a'",
        "VARCHAR(9) DEFAULT _latin1 0xe9",
    ),
    *(
        r"INT COMMENT 'back\\slash' DEFAULT 5",
        r"INT DEFAULT 6 COMMENT 'it''s \"q\" \\'",
        "INT /*T![auto_rand] */ DEFAULT 8",
    ),
    *(
        "/*!80000 INT */ DEFAULT 9",
        "INT /*!50100 DEFAULT 4 */",
        "INT DEFAULT 3 /*T!99999 COMMENT 'a' */",
        "INT -- c\n DEFAULT 2",
    ),
    *("TIMESTAMP DEFAULT CURRENT_TIMESTAMP()", "DATETIME(3) DEFAULT NOW(3)", "TIMESTAMP(2) DEFAULT LOCALTIMESTAMP(2)"),
    *(
        "TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP",
        "TIMESTAMP NOT NULL ON UPDATE CURRENT_TIMESTAMP",
        "DATETIME DEFAULT LOCALTIME",
    ),
    *("DATE DEFAULT CURRENT_DATE", "INT DEFAULT (NEXT VALUE FOR sq)", "BIGINT DEFAULT NEXT VALUE FOR oracle_Main.sq"),
    *(
        "INT NOT NULL AUTO_INCREMENT",
        "BIGINT AUTO_RANDOM",
        "INT UNIQUE KEY DEFAULT 3",
        "INT NOT NULL UNIQUE",
        "VARCHAR(9) NOT NULL UNIQUE",
    ),
    *(
        "INT REFERENCES Users (Id)",
        "INT CONSTRAINT ck CHECK (1 = 1) NOT ENFORCED",
        "INT COLUMN_FORMAT FIXED STORAGE DISK",
    ),
    *(
        "CHAR(3) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT 'a'",
        "TEXT COLLATE utf8mb4_general_ci NOT NULL",
    ),
    *(
        "VARCHAR(9) NOT NULL DEFAULT 'é' COLLATE utf8mb4_unicode_ci",
        "INT VISIBLE",
        "INT NULL NOT NULL",
        "INT NOT NULL NULL",
    ),
    *(
        "INT GENERATED ALWAYS AS (1) STORED NOT NULL",
        "VARCHAR(9) AS ('x') COMMENT 'v'",
        "INT AS (1) UNIQUE",
        "JSON AS ('[1]')",
    ),
    *("MEDIUMINT(4) UNSIGNED ZEROFILL DEFAULT 42", "INT DEFAULT (7)", "JSON DEFAULT ('{}')", "BIT(8) DEFAULT 'a'"),
)

ENTRIES = (
    *("UNIQUE KEY ({first}(2))", "KEY ((1+1))", "CONSTRAINT `c k` UNIQUE ({first})", "INDEX i ({first})"),
    *("FULLTEXT KEY ({first})", "CONSTRAINT CHECK (1 > 0)", "FOREIGN KEY fk ({first}) REFERENCES Users (Id)"),
    *("UNIQUE KEY ((1+1))", "UNIQUE u2 USING BTREE ({first}) COMMENT 'u'", "CONSTRAINT ck CHECK (1 > 0) NOT ENFORCED"),
)
"""Of CREATE TABLE, beside columns."""
OPTIONS = (
    *("", "", "", " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4", " COLLATE utf8mb4_general_ci", " CHARSET gbk"),
    *(" CHARACTER SET = latin1", " DEFAULT COLLATE = ascii_bin", " COMMENT='it''s; -- x'", " PRE_SPLIT_REGIONS=2"),
    *(" AUTO_INCREMENT = 7 AUTO_ID_CACHE 1", " /*T![placement] PLACEMENT POLICY=`pp` */", " ROW_FORMAT=COMPACT"),
    *(" TTL = `x` + INTERVAL 1 DAY", " PARTITION BY HASH ({first}) PARTITIONS 2", " SHARD_ROW_ID_BITS 2"),
    *(" PARTITION BY KEY ({first}) PARTITIONS 2", " PARTITION BY RANGE ({first}) (PARTITION a VALUES LESS THAN (9))"),
    *(" PARTITION BY KEY () PARTITIONS 2", " AS SELECT 1", " STATS_BUCKETS 5 CHECKSUM 1"),
)
"""Behind the columns of CREATE TABLE."""
_REST = "PARTITION pZ VALUES LESS THAN (MAXVALUE)"
PARTITIONINGS = (
    *("HASH({column}) PARTITIONS 3", "KEY({column}) PARTITIONS 2", "HASH(MONTH({column})) PARTITIONS 4"),
    *("LINEAR HASH({column} + 1) PARTITIONS 2", "HASH(ABS({column})) PARTITIONS 2"),
    *("HASH(WEEKDAY({column})) PARTITIONS 2", "HASH({column}) (PARTITION `h a` COMMENT 'x', PARTITION hb)"),
    *("HASH({column}) PARTITIONS 3 UPDATE INDEXES (nope GLOBAL)", "KEY({column})", "LINEAR KEY({column}) PARTITIONS 2"),
    f"RANGE({{column}}) (PARTITION pA VALUES LESS THAN (50), {_REST})",
    f"RANGE COLUMNS({{column}}) (PARTITION pA VALUES LESS THAN ('m'), {_REST})",
    "LIST({column}) (PARTITION pL VALUES IN (1,2,NULL), PARTITION pD DEFAULT)",
    "LIST COLUMNS({column}) (PARTITION pL VALUES IN (1,2,3,4,5,6,7), PARTITION pD DEFAULT)",
    f"RANGE COLUMNS({{column}}) (PARTITION pA VALUES LESS THAN ('2015-01-01'), {_REST})",
    f"RANGE(TO_DAYS({{column}})) (PARTITION pA VALUES LESS THAN (TO_DAYS('2015-01-01')), {_REST})",
    f"RANGE(UNIX_TIMESTAMP({{column}})) (PARTITION pA VALUES LESS THAN (1400000000), {_REST})",
    f"RANGE({{column}} DIV 10) (PARTITION pA VALUES LESS THAN (2), {_REST})",
    f"RANGE({{column}}) (PARTITION pA VALUES LESS THAN (-5), PARTITION pB VALUES LESS THAN (5+5), {_REST})",
)
ALTERATIONS = (
    *("COMMENT 'it''s; a -- table'", "AUTO_INCREMENT = 5000", "SHARD_ROW_ID_BITS = 4", "ADD CONSTRAINT CHECK (1 > 0)"),
    *(
        "ENGINE = InnoDB, COMMENT = 'x'",
        "CACHE",
        "NOCACHE",
        "ORDER BY 1",
        "AUTO_ID_CACHE 10",
        "FORCE",
        "PLACEMENT POLICY pp",
    ),
    *("ALGORITHM=INSTANT", "SET TIFLASH REPLICA 0", "STATS_OPTIONS = 'x'", "COMMENT 'a', COMMENT 'b'", "REMOVE TTL"),
    *(
        "ATTRIBUTES = 'merge_option=deny'",
        "PLACEMENT POLICY = DEFAULT",
        "TTL_ENABLE='OFF'",
        "ENABLE KEYS",
        "DISABLE KEYS",
    ),
    *("TTL = {column} + INTERVAL 90 DAY TTL_JOB_INTERVAL='1h'", "ADD CONSTRAINT {new} CHECK (1 > 0) NOT ENFORCED"),
    "ADD CONSTRAINT {new} FOREIGN KEY ({column}) REFERENCES Users (Id) ON DELETE SET NULL ON UPDATE CASCADE",
    *("ADD STATS_EXTENDED st CORRELATION(a, b)", "COMPRESSION='zlib', ROW_FORMAT=DYNAMIC", "LOCK=NONE, {added}"),
    *(
        "{added}, ALGORITHM=INPLACE",
        "WITH VALIDATION",
        "{added}, COMMENT = 'a,b'",
        "DROP CHECK {new}",
        "TTL_ENABLE='ON'",
    ),
    *("DROP FOREIGN KEY {new}", "DROP CONSTRAINT {new}", "ALTER CONSTRAINT {new} ENFORCED", "AUTO_RANDOM_BASE = 50"),
)
"""Of ALTER TABLE, which say nothing about rows, most of them."""
OTHERS = (
    *("CREATE VIEW {name} AS SELECT 1 AS one", "CREATE OR REPLACE VIEW {name} AS SELECT * FROM {one}"),
    *("CREATE SEQUENCE {name}", "ANALYZE TABLE {one}", "CREATE TABLE {name} AS SELECT 1 AS a", "REPAIR TABLE {one}"),
    *("DROP TABLE IF EXISTS {name}, {name}", "CREATE TEMPORARY TABLE {name} (a INT)", "DROP VIEW IF EXISTS {name}"),
    *("DROP TABLE IF EXISTS {one}", "ALTER SEQUENCE sq INCREMENT 2"),
    *("DROP SEQUENCE IF EXISTS {name}", "UNLOCK TABLES", "RECOVER TABLE {one}", "CREATE ROLE IF NOT EXISTS r1"),
    *("CREATE USER IF NOT EXISTS u1 IDENTIFIED BY 'it''s'", "SPLIT TABLE {one} BETWEEN (0) AND (100) REGIONS 2"),
    *("CREATE PLACEMENT POLICY IF NOT EXISTS pp FOLLOWERS=2", "CREATE DEFINER=CURRENT_USER VIEW {name} AS TABLE {one}"),
    *("CREATE GLOBAL BINDING FOR SELECT 1 USING SELECT 1", "SET @a = 1", "FLUSH TABLES"),
)

TEXTS = ("''", "'a'", "'A'", "'a '", "'it''s'", "'é1'", "'12'", "'-3.50'", "'2020-01-02'", "'y,x'", "'info'", "'q'")
VALUES: dict[str, Sequence[str]] = {
    **dict.fromkeys(("tinyint", "year"), ("0", "1", "99")),
    **dict.fromkeys(("smallint", "mediumint", "int", "bigint"), ("0", "1", "7", "1999", "127")),
    "decimal": ("0", "1.5", "99.99", "0.005", "7"),
    **dict.fromkeys(("float", "double"), ("0", "0.1", "-37.25", "1e10", "3e-7", "16777217", "2.5")),
    "bit": ("b'0'", "b'1'", "1"),
    "date": ("'1000-01-01'", "'2020-02-29'", "'2018-05-06'", "'2023-12-31'", "'9999-12-31'"),
    "datetime": ("'2014-11-04 13:16:07.978'", "'1000-01-01 00:00:00'", "'9999-12-31 23:59:58'", "'2023-12-31'"),
    "timestamp": (
        "'2014-11-04 13:16:07.978'",
        "'1970-01-03 00:00:00'",
        "'2024-11-03 05:30:00'",
        "'2037-12-31 23:59:59'",
    ),
    "time": ("'-838:59:59'", "'00:00:00.126'", "'23:59:59'", "'-00:00:01'", "'838:59:59'"),
    **dict.fromkeys(("char", "varchar", "tinytext"), TEXTS),
    **dict.fromkeys(("text", "mediumtext", "longtext"), (*TEXTS, r"'back\\slash'", "'中 😀'")),
    **dict.fromkeys(
        ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), ("x''", "x'00'", "x'4142'", "x'c3a9'")
    ),
    **dict.fromkeys(("enum", "set"), ("1", "2")),
    "json": ("""'{"k": 1}'""", "'null'", """'[1, 2.5, "é"]'""", "'\"s\"'"),
    "vector": ("'[1,2.5]'",),
}
