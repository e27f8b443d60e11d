SELECT pg_catalog.set_config('search_path', '', false);
CREATE TABLE public.accounts (
    project_id text NOT NULL,
    name text NOT NULL,
    balance bigint NOT NULL
);
CREATE TABLE public.budget_changes (
    id bigint NOT NULL,
    at bigint NOT NULL,
    budget bigint NOT NULL,
    project_id text NOT NULL,
    user_id text,
    operation text NOT NULL,
    valid_from bigint NOT NULL,
    valid_until bigint NOT NULL,
    amount bigint NOT NULL,
    who text NOT NULL,
    reason text
);
ALTER TABLE public.budget_changes ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.budget_changes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.budgets (
    id bigint NOT NULL,
    project_id text NOT NULL,
    user_id text,
    valid_from bigint NOT NULL,
    valid_until bigint NOT NULL,
    amount bigint NOT NULL,
    removed_at bigint
);
ALTER TABLE public.budgets ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.budgets_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.decision_filters (
    decision bigint NOT NULL,
    filter text NOT NULL,
    project_id text,
    at bigint NOT NULL
);
CREATE TABLE public.decisions (
    id bigint NOT NULL,
    at bigint NOT NULL,
    request_id text NOT NULL,
    operation text NOT NULL,
    outcome text NOT NULL,
    project_id text,
    user_id text,
    lease_id text,
    project_label text,
    user_label text,
    asked_start bigint,
    asked_end bigint,
    concerns text,
    replica text NOT NULL,
    record text NOT NULL
);
ALTER TABLE public.decisions ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.decisions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.entries (
    id bigint NOT NULL,
    at bigint NOT NULL,
    project_id text NOT NULL,
    account text NOT NULL,
    delta bigint NOT NULL,
    lease bigint NOT NULL,
    operation text NOT NULL,
    who text NOT NULL,
    request_id text,
    reason text
);
ALTER TABLE public.entries ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.entries_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.folded_balances (
    project_id text NOT NULL,
    account text NOT NULL,
    amount bigint NOT NULL
);
CREATE TABLE public.folds (
    project_id text NOT NULL,
    region text NOT NULL,
    until bigint NOT NULL,
    leases bigint NOT NULL,
    entries bigint NOT NULL
);
CREATE TABLE public.follower (
    id bigint NOT NULL,
    holder text,
    held_until bigint NOT NULL,
    followed_at bigint,
    matched text,
    doubted text
);
CREATE TABLE public.kysely_migration (
    name character varying(255) NOT NULL,
    "timestamp" character varying(255) NOT NULL
);
CREATE TABLE public.kysely_migration_lock (
    id character varying(255) NOT NULL,
    is_locked integer DEFAULT 0 NOT NULL
);
CREATE TABLE public.leases (
    id bigint NOT NULL,
    lease_id text,
    region text NOT NULL,
    project_id text NOT NULL,
    user_id text NOT NULL,
    name text NOT NULL,
    starts_at bigint NOT NULL,
    ends_at bigint NOT NULL,
    state text NOT NULL,
    demand text NOT NULL,
    claims text NOT NULL,
    revision bigint NOT NULL,
    recorded_at bigint NOT NULL,
    ended_at bigint,
    alternatives text,
    repetition_key text,
    repetition_content text,
    touched_at bigint DEFAULT 0 NOT NULL,
    shown text,
    resources text,
    CONSTRAINT leases_state_check CHECK ((state = ANY (ARRAY['open'::text, 'ended'::text])))
);
ALTER TABLE public.leases ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.leases_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.ledger (
    id text NOT NULL,
    epoch bigint NOT NULL,
    suspended text,
    file text
);
CREATE TABLE public.outbox (
    id bigint NOT NULL,
    sender text NOT NULL,
    lease text NOT NULL,
    project_id text NOT NULL,
    lease_id text,
    key text NOT NULL,
    state text NOT NULL,
    written_at bigint NOT NULL,
    expires_from bigint NOT NULL,
    attempts bigint NOT NULL,
    next_at bigint NOT NULL,
    claim text,
    claimed_until bigint NOT NULL,
    error text,
    settled_at bigint,
    who text,
    reason text,
    body text NOT NULL,
    CONSTRAINT outbox_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'dead'::text, 'discarded'::text])))
);
ALTER TABLE public.outbox ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.outbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.projects (
    project_id text NOT NULL,
    revision bigint NOT NULL,
    latest_at bigint DEFAULT 0 NOT NULL
);
INSERT INTO public.accounts VALUES ('climate', 'max_leases/user/alice', 1);
INSERT INTO public.accounts VALUES ('climate', 'max_leases/user/alice/type/physical:host', 1);
INSERT INTO public.accounts VALUES ('climate', 'usage_budget/2', 518400000000);
INSERT INTO public.accounts VALUES ('climate', 'max_leases/project', 2);
INSERT INTO public.accounts VALUES ('climate', 'max_leases/user/bob', 1);
INSERT INTO public.accounts VALUES ('climate', 'max_leases/project/type/physical:host', 2);
INSERT INTO public.accounts VALUES ('climate', 'max_leases/user/bob/type/physical:host', 1);
INSERT INTO public.accounts VALUES ('climate', 'usage_budget/1', 597600000000);
INSERT INTO public.accounts VALUES ('genome', 'max_leases/user/carol', 2);
INSERT INTO public.accounts VALUES ('genome', 'max_leases/user/carol/type/physical:host', 2);
INSERT INTO public.accounts VALUES ('genome', 'max_leases/project', 2);
INSERT INTO public.accounts VALUES ('genome', 'max_leases/user/dave', 0);
INSERT INTO public.accounts VALUES ('genome', 'max_leases/project/type/physical:host', 2);
INSERT INTO public.accounts VALUES ('genome', 'max_leases/user/dave/type/physical:host', 0);
INSERT INTO public.accounts VALUES ('genome', 'usage_budget/3', 284400000000);
INSERT INTO public.budget_changes OVERRIDING SYSTEM VALUE VALUES (1, 1795766683772952, 1, 'climate', NULL, 'set', 1893456000, 1924992000, 3600000000000, 'root', 'first year');
INSERT INTO public.budget_changes OVERRIDING SYSTEM VALUE VALUES (2, 1795766684821699, 2, 'climate', 'alice', 'set', 1893456000, 1924992000, 1080000000000, 'root', 'her share');
INSERT INTO public.budget_changes OVERRIDING SYSTEM VALUE VALUES (3, 1795766685724653, 3, 'genome', NULL, 'set', 1893456000, 1909094400, 181800000000, 'root', NULL);
INSERT INTO public.budget_changes OVERRIDING SYSTEM VALUE VALUES (4, 1795766686788802, 3, 'genome', NULL, 'set', 1893456000, 1909094400, 360900000000, 'root', 'more');
INSERT INTO public.budgets OVERRIDING SYSTEM VALUE VALUES (1, 'climate', NULL, 1893456000, 1924992000, 3600000000000, NULL);
INSERT INTO public.budgets OVERRIDING SYSTEM VALUE VALUES (2, 'climate', 'alice', 1893456000, 1924992000, 1080000000000, NULL);
INSERT INTO public.budgets OVERRIDING SYSTEM VALUE VALUES (3, 'genome', NULL, 1893456000, 1909094400, 360900000000, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (1, 1795766687636043, 'climate', 'max_leases/project', 1, 1, 'create', 'alice', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (2, 1795766687636043, 'climate', 'max_leases/user/alice', 1, 1, 'create', 'alice', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (3, 1795766687636043, 'climate', 'max_leases/project/type/physical:host', 1, 1, 'create', 'alice', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (4, 1795766687636043, 'climate', 'max_leases/user/alice/type/physical:host', 1, 1, 'create', 'alice', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (5, 1795766687636043, 'climate', 'usage_budget/1', 518400000000, 1, 'create', 'alice', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (6, 1795766687636043, 'climate', 'usage_budget/2', 518400000000, 1, 'create', 'alice', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (7, 1795766687662709, 'climate', 'max_leases/project', 1, 2, 'create', 'bob', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (8, 1795766687662709, 'climate', 'max_leases/user/bob', 1, 2, 'create', 'bob', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (9, 1795766687662709, 'climate', 'max_leases/project/type/physical:host', 1, 2, 'create', 'bob', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (10, 1795766687662709, 'climate', 'max_leases/user/bob/type/physical:host', 1, 2, 'create', 'bob', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (11, 1795766687662709, 'climate', 'usage_budget/1', 79200000000, 2, 'create', 'bob', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (12, 1795766687680809, 'genome', 'max_leases/project', 1, 4, 'create', 'carol', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (13, 1795766687680809, 'genome', 'max_leases/user/carol', 1, 4, 'create', 'carol', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (14, 1795766687680809, 'genome', 'max_leases/project/type/physical:host', 1, 4, 'create', 'carol', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (15, 1795766687680809, 'genome', 'max_leases/user/carol/type/physical:host', 1, 4, 'create', 'carol', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (16, 1795766687680809, 'genome', 'usage_budget/3', 86400000000, 4, 'create', 'carol', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (17, 1795766687689972, 'genome', 'usage_budget/3', 86400000000, 4, 'update', 'carol', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (18, 1795766687702513, 'genome', 'max_leases/project', 1, 5, 'create', 'carol', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (19, 1795766687702513, 'genome', 'max_leases/user/carol', 1, 5, 'create', 'carol', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (20, 1795766687702513, 'genome', 'max_leases/project/type/physical:host', 1, 5, 'create', 'carol', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (21, 1795766687702513, 'genome', 'max_leases/user/carol/type/physical:host', 1, 5, 'create', 'carol', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (22, 1795766687702513, 'genome', 'usage_budget/3', 36000000000, 5, 'create', 'carol', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (23, 1795766687710242, 'genome', 'usage_budget/3', 75600000000, 5, 'update', 'carol', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (24, 1795766687718353, 'genome', 'max_leases/project', 1, 6, 'create', 'dave', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (25, 1795766687718353, 'genome', 'max_leases/user/dave', 1, 6, 'create', 'dave', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (26, 1795766687718353, 'genome', 'max_leases/project/type/physical:host', 1, 6, 'create', 'dave', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (27, 1795766687718353, 'genome', 'max_leases/user/dave/type/physical:host', 1, 6, 'create', 'dave', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (28, 1795766687718353, 'genome', 'usage_budget/3', 36000000000, 6, 'create', 'dave', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (29, 1795766687727809, 'genome', 'max_leases/project', -1, 6, 'end', 'dave', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (30, 1795766687727809, 'genome', 'max_leases/user/dave', -1, 6, 'end', 'dave', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (31, 1795766687727809, 'genome', 'max_leases/project/type/physical:host', -1, 6, 'end', 'dave', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (32, 1795766687727809, 'genome', 'max_leases/user/dave/type/physical:host', -1, 6, 'end', 'dave', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (33, 1795766687727809, 'genome', 'usage_budget/3', -36000000000, 6, 'end', 'dave', NULL, NULL);
INSERT INTO public.follower VALUES (1, NULL, 0, NULL, NULL, NULL);
INSERT INTO public.kysely_migration VALUES ('0001-ledger', '2026-11-27T08:04:42.729Z');
INSERT INTO public.kysely_migration VALUES ('0002-alternatives', '2026-11-27T08:04:42.738Z');
INSERT INTO public.kysely_migration VALUES ('0003-position', '2026-11-27T08:04:42.746Z');
INSERT INTO public.kysely_migration VALUES ('0004-follower', '2026-11-27T08:04:42.753Z');
INSERT INTO public.kysely_migration VALUES ('0005-outbox', '2026-11-27T08:04:42.765Z');
INSERT INTO public.kysely_migration VALUES ('0006-views', '2026-11-27T08:04:42.776Z');
INSERT INTO public.kysely_migration VALUES ('0007-decisions', '2026-11-27T08:04:42.800Z');
INSERT INTO public.kysely_migration VALUES ('0008-open-leases', '2026-11-27T08:04:42.804Z');
INSERT INTO public.kysely_migration VALUES ('0010-growth', '2026-11-27T08:04:42.813Z');
INSERT INTO public.kysely_migration_lock VALUES ('migration_lock', 0);
INSERT INTO public.leases OVERRIDING SYSTEM VALUE VALUES (1, '11111111-1111-4111-8111-111111111111', 'RegionOne', 'climate', 'alice', '11111111-1111-4111-8111-111111111111', 1922346000000000, 1922605200000000, 'open', '2:rG51Zx-SMRkwSpzjZbjgBU0iYxqypqFrTgABIBCk4Bk', '[["max_leases/project","1"],["max_leases/user/alice","1"],["max_leases/project/type/physical:host","1"],["max_leases/user/alice/type/physical:host","1"],["usage_budget/1","2000000","1922346000","1922605200"],["usage_budget/2","2000000","1922346000","1922605200"]]', 23704020800677, 1795766687636043, NULL, NULL, NULL, NULL, 1795766687636043, NULL, '[[null,[["physical:host",2]]]]');
INSERT INTO public.leases OVERRIDING SYSTEM VALUE VALUES (2, NULL, 'RegionOne', 'climate', 'bob', 'lease', 1919721600000000, 1919748000000000, 'open', '2:7F40JWCdqgWW2193Y0oHErQCuUqQ-UH9MePoVmuGyoY', '[["max_leases/project","1"],["max_leases/user/bob","1"],["max_leases/project/type/physical:host","1"],["max_leases/user/bob/type/physical:host","1"],["usage_budget/1","3000000","1919721600","1919748000"]]', 35735899588985, 1795766687662709, NULL, NULL, NULL, NULL, 1795766687662709, NULL, '[[null,[["physical:host",3]]]]');
INSERT INTO public.leases OVERRIDING SYSTEM VALUE VALUES (4, '33333333-3333-4333-8333-333333333333', 'RegionOne', 'genome', 'carol', '33333333-3333-4333-8333-333333333333', 1903824000000000, 1903910400000000, 'open', '2:VG-gDzOXqUT0PkDM4YzAtkNtSn8a8tPqiKg-W5Szt3U', '[["max_leases/project","1"],["max_leases/user/carol","1"],["max_leases/project/type/physical:host","1"],["max_leases/user/carol/type/physical:host","1"],["usage_budget/3","2000000","1903824000","1903867200"]]', 89079709102511, 1795766687680809, NULL, '[["1903824000000000","1903867200000000","2:VG-gDzOXqUT0PkDM4YzAtkNtSn8a8tPqiKg-W5Szt3U","[[\"max_leases/project\",\"1\"],[\"max_leases/user/carol\",\"1\"],[\"max_leases/project/type/physical:host\",\"1\"],[\"max_leases/user/carol/type/physical:host\",\"1\"],[\"usage_budget/3\",\"2000000\",\"1903824000\",\"1903867200\"]]"],["1903824000000000","1903910400000000","2:VG-gDzOXqUT0PkDM4YzAtkNtSn8a8tPqiKg-W5Szt3U","[[\"max_leases/project\",\"1\"],[\"max_leases/user/carol\",\"1\"],[\"max_leases/project/type/physical:host\",\"1\"],[\"max_leases/user/carol/type/physical:host\",\"1\"],[\"usage_budget/3\",\"2000000\",\"1903824000\",\"1903910400\"]]"],["1903824000000000","1903910400000000","2:_0i2HyUcqzOzsZpZWRxuGNFV6_iy5PiIy-TxK5Buiuc","[[\"max_leases/project\",\"1\"],[\"max_leases/user/carol\",\"1\"],[\"max_leases/project/type/physical:host\",\"1\"],[\"max_leases/user/carol/type/physical:host\",\"1\"],[\"usage_budget/3\",\"1000000\",\"1903824000\",\"1903910400\"]]"]]', NULL, NULL, 1795766687689972, '?', '[[null,[["physical:host",2]]]]');
INSERT INTO public.leases OVERRIDING SYSTEM VALUE VALUES (5, '44444444-4444-4444-8444-444444444444', 'RegionOne', 'genome', 'carol', '44444444-4444-4444-8444-444444444444', 1906502400000000, 1906558200000000, 'open', '2:VG-gDzOXqUT0PkDM4YzAtkNtSn8a8tPqiKg-W5Szt3U', '[["max_leases/project","1"],["max_leases/user/carol","1"],["max_leases/project/type/physical:host","1"],["max_leases/user/carol/type/physical:host","1"],["usage_budget/3","2000000","1906502400","1906558200"]]', 98055124940969, 1795766687702513, NULL, '[["1906502400000000","1906558200000000","2:VG-gDzOXqUT0PkDM4YzAtkNtSn8a8tPqiKg-W5Szt3U","[[\"max_leases/project\",\"1\"],[\"max_leases/user/carol\",\"1\"],[\"max_leases/project/type/physical:host\",\"1\"],[\"max_leases/user/carol/type/physical:host\",\"1\"],[\"usage_budget/3\",\"2000000\",\"1906502400\",\"1906558200\"]]"],["1906502400000000","1906538400000000","2:VG-gDzOXqUT0PkDM4YzAtkNtSn8a8tPqiKg-W5Szt3U","[[\"max_leases/project\",\"1\"],[\"max_leases/user/carol\",\"1\"],[\"max_leases/project/type/physical:host\",\"1\"],[\"max_leases/user/carol/type/physical:host\",\"1\"],[\"usage_budget/3\",\"2000000\",\"1906502400\",\"1906538400\"]]"],["1906502400000000","1906538400000000","2:_0i2HyUcqzOzsZpZWRxuGNFV6_iy5PiIy-TxK5Buiuc","[[\"max_leases/project\",\"1\"],[\"max_leases/user/carol\",\"1\"],[\"max_leases/project/type/physical:host\",\"1\"],[\"max_leases/user/carol/type/physical:host\",\"1\"],[\"usage_budget/3\",\"1000000\",\"1906502400\",\"1906538400\"]]"]]', NULL, NULL, 1795766687710242, '?', '[[null,[["physical:host",2]]]]');
INSERT INTO public.leases OVERRIDING SYSTEM VALUE VALUES (6, '55555555-5555-4555-8555-555555555555', 'RegionOne', 'genome', 'dave', '55555555-5555-4555-8555-555555555555', 1898553600000000, 1898589600000000, 'ended', '2:_0i2HyUcqzOzsZpZWRxuGNFV6_iy5PiIy-TxK5Buiuc', '[["max_leases/project","1"],["max_leases/user/dave","1"],["max_leases/project/type/physical:host","1"],["max_leases/user/dave/type/physical:host","1"],["usage_budget/3","1000000","1898553600","1898589600"]]', 77457536327289, 1795766687718353, 1795766687727809, NULL, NULL, NULL, 1795766687718353, NULL, '[[null,[["physical:host",1]]]]');
INSERT INTO public.ledger VALUES ('2cf9ff67-1998-469d-a0e7-3cc3c69bbdd7', 1, NULL, NULL);
INSERT INTO public.projects VALUES ('climate', 4, 1795766687662580);
INSERT INTO public.projects VALUES ('genome', 8, 1795766687727711);
SELECT pg_catalog.setval('public.budget_changes_id_seq', 4, true);
SELECT pg_catalog.setval('public.budgets_id_seq', 3, true);
SELECT pg_catalog.setval('public.decisions_id_seq', 1, false);
SELECT pg_catalog.setval('public.entries_id_seq', 33, true);
SELECT pg_catalog.setval('public.leases_id_seq', 7, true);
SELECT pg_catalog.setval('public.outbox_id_seq', 1, false);
ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT accounts_primary_key PRIMARY KEY (project_id, name);
ALTER TABLE ONLY public.budget_changes
    ADD CONSTRAINT budget_changes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.budgets
    ADD CONSTRAINT budgets_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.decision_filters
    ADD CONSTRAINT decision_filters_primary_key PRIMARY KEY (decision, filter);
ALTER TABLE ONLY public.decisions
    ADD CONSTRAINT decisions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.entries
    ADD CONSTRAINT entries_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.folded_balances
    ADD CONSTRAINT folded_balances_primary_key PRIMARY KEY (project_id, account);
ALTER TABLE ONLY public.folds
    ADD CONSTRAINT folds_primary_key PRIMARY KEY (project_id, region, until);
ALTER TABLE ONLY public.follower
    ADD CONSTRAINT follower_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.kysely_migration_lock
    ADD CONSTRAINT kysely_migration_lock_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.kysely_migration
    ADD CONSTRAINT kysely_migration_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.ledger
    ADD CONSTRAINT ledger_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_pkey PRIMARY KEY (project_id);
CREATE INDEX budget_changes_by_project ON public.budget_changes USING btree (project_id);
CREATE INDEX budgets_by_owner ON public.budgets USING btree (project_id, user_id, valid_until);
CREATE INDEX decision_filters_by_filter ON public.decision_filters USING btree (filter, at, decision);
CREATE INDEX decision_filters_by_project ON public.decision_filters USING btree (project_id, filter, at, decision);
CREATE INDEX decisions_by_lease_id ON public.decisions USING btree (lease_id, at, id) WHERE (lease_id IS NOT NULL);
CREATE INDEX decisions_by_outcome ON public.decisions USING btree (outcome, at, id) WHERE (outcome <> 'allowed'::text);
CREATE INDEX decisions_by_project ON public.decisions USING btree (project_id, outcome, at, id, operation);
CREATE INDEX decisions_by_project_label ON public.decisions USING btree (project_label, at, id) WHERE (project_label IS NOT NULL);
CREATE INDEX decisions_by_request ON public.decisions USING btree (request_id, at, id);
CREATE INDEX decisions_by_time ON public.decisions USING btree (at, id, outcome, operation);
CREATE INDEX decisions_by_user ON public.decisions USING btree (user_id, outcome, at, id, operation);
CREATE INDEX decisions_by_user_label ON public.decisions USING btree (user_label, at, id) WHERE (user_label IS NOT NULL);
CREATE INDEX entries_by_lease ON public.entries USING btree (lease);
CREATE INDEX entries_by_project ON public.entries USING btree (project_id, id);
CREATE INDEX leases_by_end ON public.leases USING btree (project_id, state, ends_at, starts_at);
CREATE UNIQUE INDEX leases_by_lease_id ON public.leases USING btree (lease_id, region, project_id) WHERE (lease_id IS NOT NULL);
CREATE INDEX leases_by_owner ON public.leases USING btree (region, user_id, id);
CREATE INDEX leases_by_project ON public.leases USING btree (project_id, id);
CREATE INDEX leases_by_repetition_key ON public.leases USING btree (project_id, repetition_key) WHERE (repetition_key IS NOT NULL);
CREATE INDEX leases_by_start ON public.leases USING btree (project_id, starts_at) WHERE (lease_id IS NULL);
CREATE INDEX leases_open_by_region ON public.leases USING btree (region, id, ends_at) WHERE (state = 'open'::text);
CREATE INDEX leases_unsettled ON public.leases USING btree (project_id, user_id) WHERE ((alternatives IS NOT NULL) AND (lease_id IS NULL));
CREATE INDEX outbox_by_lease ON public.outbox USING btree (lease, state, id);
CREATE INDEX outbox_by_sender ON public.outbox USING btree (sender, state, id);
ALTER TABLE ONLY public.budget_changes
    ADD CONSTRAINT budget_changes_budget_fkey FOREIGN KEY (budget) REFERENCES public.budgets(id);
ALTER TABLE ONLY public.entries
    ADD CONSTRAINT entries_lease_fkey FOREIGN KEY (lease) REFERENCES public.leases(id);
