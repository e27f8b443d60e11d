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
CREATE TABLE public.projects (
    project_id text NOT NULL,
    revision bigint NOT NULL
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
INSERT INTO public.accounts VALUES ('genome', 'usage_budget/3', 198000000000);
INSERT INTO public.budget_changes OVERRIDING SYSTEM VALUE VALUES (1, 1795766189360000, 1, 'climate', NULL, 'set', 1893456000, 1924992000, 3600000000000, 'root', 'first year');
INSERT INTO public.budget_changes OVERRIDING SYSTEM VALUE VALUES (2, 1795766192870000, 2, 'climate', 'alice', 'set', 1893456000, 1924992000, 1080000000000, 'root', 'her share');
INSERT INTO public.budget_changes OVERRIDING SYSTEM VALUE VALUES (3, 1795766195574000, 3, 'genome', NULL, 'set', 1893456000, 1909094400, 181800000000, 'root', NULL);
INSERT INTO public.budget_changes OVERRIDING SYSTEM VALUE VALUES (4, 1795766197865000, 3, 'genome', NULL, 'set', 1893456000, 1909094400, 360900000000, 'root', 'more');
INSERT INTO public.budgets OVERRIDING SYSTEM VALUE VALUES (1, 'climate', NULL, 1893456000, 1924992000, 3600000000000, NULL);
INSERT INTO public.budgets OVERRIDING SYSTEM VALUE VALUES (2, 'climate', 'alice', 1893456000, 1924992000, 1080000000000, NULL);
INSERT INTO public.budgets OVERRIDING SYSTEM VALUE VALUES (3, 'genome', NULL, 1893456000, 1909094400, 360900000000, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (1, 1795766199257000, 'climate', 'max_leases/project', 1, 1, 'create', 'alice', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (2, 1795766199257000, 'climate', 'max_leases/user/alice', 1, 1, 'create', 'alice', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (3, 1795766199257000, 'climate', 'max_leases/project/type/physical:host', 1, 1, 'create', 'alice', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (4, 1795766199257000, 'climate', 'max_leases/user/alice/type/physical:host', 1, 1, 'create', 'alice', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (5, 1795766199257000, 'climate', 'usage_budget/1', 518400000000, 1, 'create', 'alice', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (6, 1795766199257000, 'climate', 'usage_budget/2', 518400000000, 1, 'create', 'alice', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (7, 1795766199326000, 'climate', 'max_leases/project', 1, 2, 'create', 'bob', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (8, 1795766199326000, 'climate', 'max_leases/user/bob', 1, 2, 'create', 'bob', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (9, 1795766199326000, 'climate', 'max_leases/project/type/physical:host', 1, 2, 'create', 'bob', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (10, 1795766199326000, 'climate', 'max_leases/user/bob/type/physical:host', 1, 2, 'create', 'bob', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (11, 1795766199326000, 'climate', 'usage_budget/1', 79200000000, 2, 'create', 'bob', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (12, 1795766199415000, 'genome', 'max_leases/project', 1, 3, 'create', 'carol', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (13, 1795766199415000, 'genome', 'max_leases/user/carol', 1, 3, 'create', 'carol', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (14, 1795766199415000, 'genome', 'max_leases/project/type/physical:host', 1, 3, 'create', 'carol', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (15, 1795766199415000, 'genome', 'max_leases/user/carol/type/physical:host', 1, 3, 'create', 'carol', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (16, 1795766199415000, 'genome', 'usage_budget/3', 86400000000, 3, 'create', 'carol', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (17, 1795766199557000, 'genome', 'max_leases/project', 1, 4, 'create', 'carol', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (18, 1795766199557000, 'genome', 'max_leases/user/carol', 1, 4, 'create', 'carol', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (19, 1795766199557000, 'genome', 'max_leases/project/type/physical:host', 1, 4, 'create', 'carol', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (20, 1795766199557000, 'genome', 'max_leases/user/carol/type/physical:host', 1, 4, 'create', 'carol', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (21, 1795766199557000, 'genome', 'usage_budget/3', 36000000000, 4, 'create', 'carol', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (22, 1795766199615000, 'genome', 'usage_budget/3', 75600000000, 4, 'update', 'carol', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (23, 1795766199659000, 'genome', 'max_leases/project', 1, 5, 'create', 'dave', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (24, 1795766199659000, 'genome', 'max_leases/user/dave', 1, 5, 'create', 'dave', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (25, 1795766199659000, 'genome', 'max_leases/project/type/physical:host', 1, 5, 'create', 'dave', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (26, 1795766199659000, 'genome', 'max_leases/user/dave/type/physical:host', 1, 5, 'create', 'dave', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (27, 1795766199659000, 'genome', 'usage_budget/3', 36000000000, 5, 'create', 'dave', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (28, 1795766199690000, 'genome', 'max_leases/project', -1, 5, 'end', 'dave', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (29, 1795766199690000, 'genome', 'max_leases/user/dave', -1, 5, 'end', 'dave', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (30, 1795766199690000, 'genome', 'max_leases/project/type/physical:host', -1, 5, 'end', 'dave', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (31, 1795766199690000, 'genome', 'max_leases/user/dave/type/physical:host', -1, 5, 'end', 'dave', NULL, NULL);
INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES (32, 1795766199690000, 'genome', 'usage_budget/3', -36000000000, 5, 'end', 'dave', NULL, NULL);
INSERT INTO public.kysely_migration VALUES ('0001-ledger', '2026-11-27T07:56:25.932Z');
INSERT INTO public.kysely_migration_lock VALUES ('migration_lock', 0);
INSERT INTO public.leases OVERRIDING SYSTEM VALUE VALUES (1, '11111111-1111-4111-8111-111111111111', 'RegionOne', 'climate', 'alice', '11111111-1111-4111-8111-111111111111', 1922346000000000, 1922605200000000, 'open', 'nYGQtHa3gTkUzK4Sm2JN3kajt23twwFLGvrmlWomyLA', '[["max_leases/project","1"],["max_leases/user/alice","1"],["max_leases/project/type/physical:host","1"],["max_leases/user/alice/type/physical:host","1"],["usage_budget/1","2000000","1922346000","1922605200"],["usage_budget/2","2000000","1922346000","1922605200"]]', 1, 1795766199257000, NULL);
INSERT INTO public.leases OVERRIDING SYSTEM VALUE VALUES (2, NULL, 'RegionOne', 'climate', 'bob', 'lease', 1919721600000000, 1919748000000000, 'open', '29FYrVQtFvAMuXJP_nWFfg-l_RrqXhE4lgiG3a3qNhM', '[["max_leases/project","1"],["max_leases/user/bob","1"],["max_leases/project/type/physical:host","1"],["max_leases/user/bob/type/physical:host","1"],["usage_budget/1","3000000","1919721600","1919748000"]]', 1, 1795766199326000, NULL);
INSERT INTO public.leases OVERRIDING SYSTEM VALUE VALUES (3, '33333333-3333-4333-8333-333333333333', 'RegionOne', 'genome', 'carol', '33333333-3333-4333-8333-333333333333', 1903824000000000, 1903867200000000, 'open', 'Gjeg1z8_tkrTo4CdTLeeCWjORi8PbchNU2bbtOAs-6E', '[["max_leases/project","1"],["max_leases/user/carol","1"],["max_leases/project/type/physical:host","1"],["max_leases/user/carol/type/physical:host","1"],["usage_budget/3","2000000","1903824000","1903867200"]]', 2, 1795766199415000, NULL);
INSERT INTO public.leases OVERRIDING SYSTEM VALUE VALUES (4, '44444444-4444-4444-8444-444444444444', 'RegionOne', 'genome', 'carol', '44444444-4444-4444-8444-444444444444', 1906502400000000, 1906558200000000, 'open', 'Gjeg1z8_tkrTo4CdTLeeCWjORi8PbchNU2bbtOAs-6E', '[["max_leases/project","1"],["max_leases/user/carol","1"],["max_leases/project/type/physical:host","1"],["max_leases/user/carol/type/physical:host","1"],["usage_budget/3","2000000","1906502400","1906558200"]]', 2, 1795766199557000, NULL);
INSERT INTO public.leases OVERRIDING SYSTEM VALUE VALUES (5, '55555555-5555-4555-8555-555555555555', 'RegionOne', 'genome', 'dave', '55555555-5555-4555-8555-555555555555', 1898553600000000, 1898589600000000, 'ended', 'ScNNufAXy3roYjokCiDp691x5ZD8gdBjvBF1JsEBeQk', '[["max_leases/project","1"],["max_leases/user/dave","1"],["max_leases/project/type/physical:host","1"],["max_leases/user/dave/type/physical:host","1"],["usage_budget/3","1000000","1898553600","1898589600"]]', 2, 1795766199659000, 1795766199690000);
INSERT INTO public.projects VALUES ('climate', 4);
INSERT INTO public.projects VALUES ('genome', 8);
SELECT pg_catalog.setval('public.budget_changes_id_seq', 4, true);
SELECT pg_catalog.setval('public.budgets_id_seq', 3, true);
SELECT pg_catalog.setval('public.entries_id_seq', 32, true);
SELECT pg_catalog.setval('public.leases_id_seq', 5, true);
ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT accounts_primary_key PRIMARY KEY (project_id, name);
ALTER TABLE ONLY public.budget_changes
    ADD CONSTRAINT budget_changes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.budgets
    ADD CONSTRAINT budgets_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.entries
    ADD CONSTRAINT entries_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.kysely_migration_lock
    ADD CONSTRAINT kysely_migration_lock_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.kysely_migration
    ADD CONSTRAINT kysely_migration_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_pkey PRIMARY KEY (project_id);
CREATE INDEX budget_changes_by_project ON public.budget_changes USING btree (project_id);
CREATE INDEX budgets_by_project ON public.budgets USING btree (project_id);
CREATE INDEX entries_by_lease ON public.entries USING btree (lease);
CREATE INDEX leases_by_end ON public.leases USING btree (project_id, state, ends_at);
CREATE UNIQUE INDEX leases_by_lease_id ON public.leases USING btree (lease_id, region, project_id) WHERE (lease_id IS NOT NULL);
CREATE INDEX leases_by_start ON public.leases USING btree (project_id, starts_at, name);
ALTER TABLE ONLY public.budget_changes
    ADD CONSTRAINT budget_changes_budget_fkey FOREIGN KEY (budget) REFERENCES public.budgets(id);
ALTER TABLE ONLY public.entries
    ADD CONSTRAINT entries_lease_fkey FOREIGN KEY (lease) REFERENCES public.leases(id);
