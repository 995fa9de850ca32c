-- The store itself. A tool that has it alone counts up the epoch: transactions of servers that were
-- there before are refused.
CREATE TABLE dpareto_store (
	only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
	version integer NOT NULL,
	epoch bigint NOT NULL
);
INSERT INTO dpareto_store (version, epoch) VALUES (0, 0);

-- What updates lock.
CREATE TABLE dpareto_scopes (
	scope text COLLATE "C" PRIMARY KEY
);

CREATE TABLE dpareto_records (
	key bytea PRIMARY KEY,
	value bytea NOT NULL
);

-- Records whose keys begin with a zero byte: summaries of others, on pages of their own.
CREATE TABLE dpareto_totals (
	key bytea PRIMARY KEY,
	value bytea NOT NULL
);
