/** The types of the API. Written by `npm run client:types`; do not change it by hand. */
export interface paths {
    "/v1/budget-requests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List requests for more budget
         * @description Newest first. Members see requests of their projects.
         *
         *     For: operator, reader, manager, member.
         */
        get: operations["listBudgetRequests"];
        put?: never;
        /**
         * Request more budget
         * @description Members may request budget for their project or for themselves; managers and operators for any user. Repeating an open request does not create another. A project has at most 20 open requests, and 100 within 24 hours.
         *
         *     For: operator, manager, member.
         */
        post: operations["requestBudget"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/budget-requests/{request_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show a request for more budget
         * @description The request and its outcome.
         *
         *     For: operator, reader, manager, member.
         */
        get: operations["getBudgetRequest"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/budget-requests/{request_id}/endorse": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Endorse a request
         * @description For managers of the project and operators. A repeated request has no further effect.
         *
         *     For: operator, manager.
         */
        post: operations["endorseBudgetRequest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/budget-requests/{request_id}/grant": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Grant a request, as requested or changed
         * @description Increases the owner's last budget that is in force at some time until then, and extends it if it ends earlier; a project without one gets a budget that starts now. Operators may grant every request; managers those for users of their projects, within the budgets of the project. Granting a request also endorses it. A repeated request has no further effect.
         *
         *     For: operator, manager.
         */
        post: operations["grantBudgetRequest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/budget-requests/{request_id}/refuse": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Refuse a request
         * @description For managers of the project and operators. A repeated request has no further effect.
         *
         *     For: operator, manager.
         */
        post: operations["refuseBudgetRequest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/budget-requests/{request_id}/withdraw": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Withdraw a request
         * @description For the user who made the request. A repeated request has no further effect.
         *
         *     For: operator, manager, member.
         */
        post: operations["withdrawBudgetRequest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/budgets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List budgets
         * @description Budgets in force or expired, sorted by project, user (budgets of the whole project first) and time. Members see budgets of their projects.
         *
         *     For: operator, reader, manager, member.
         */
        get: operations["listBudgets"];
        put?: never;
        /**
         * Set a budget for a project, or for one user in it
         * @description Replaces nothing: a repeated request is answered with 409. Operators may set every budget; managers those of users in their projects, within the budgets of the project: each second of the new budget must lie in one of them, and its size is at most the sum of those that it overlaps with.
         *
         *     For: operator, manager.
         */
        post: operations["createBudget"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/budgets/{budget_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show a budget
         * @description A change of the budget must send its ETag in `If-Match`.
         *
         *     For: operator, reader, manager, member.
         */
        get: operations["getBudget"];
        put?: never;
        post?: never;
        /**
         * Remove a budget
         * @description Requires the ETag of the budget in `If-Match`. Charges are kept, and count again if a budget of the same owner is set that starts at the same second.
         *
         *     For: operator, manager.
         */
        delete: operations["removeBudget"];
        options?: never;
        head?: never;
        /**
         * Change the size or the end of a budget
         * @description Requires the ETag of the budget in `If-Match`: of two concurrent changes, one succeeds. The owner and the start cannot be changed. For managers, the rule of createBudget applies to the result.
         *
         *     For: operator, manager.
         */
        patch: operations["amendBudget"];
        trace?: never;
    };
    "/v1/budgets/{budget_id}/changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the changes of one budget
         * @description Works for removed budgets, too. Empty = there never was such a budget, or the caller may not see its project.
         *
         *     For: operator, reader, manager, member.
         */
        get: operations["listChangesOfBudget"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/budgets/changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List all changes of budgets
         * @description Includes changes of removed budgets. Members see changes in their projects.
         *
         *     For: operator, reader, manager, member.
         */
        get: operations["listBudgetChanges"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/budgets/charges": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the open leases that are charged to the budgets of a project
         * @description Sorted by end. A page may have fewer items than `limit`, even none: only `next` shows whether there are more.
         *
         *     For: operator, reader, manager, member.
         */
        get: operations["listBudgetCharges"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/budgets/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Export all budgets, in the format of importBudgets
         * @description Sorted like listBudgets. Includes expired budgets, but not removed ones. Every 1000 budgets are from one snapshot. In CSV, ids that a spreadsheet would run as a formula are prefixed with an apostrophe, which an import removes.
         *
         *     For: operator, reader, manager, member.
         */
        get: operations["exportBudgets"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/budgets/import": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Set many budgets at once: all or none
         * @description As JSON or CSV, with the columns project_id, user_id, valid_from, valid_until, amount, of at most 10000 lines. CSV may be separated by commas, semicolons or tabs, and begins with the names of the columns; the other columns of an export (taken, left) are ignored. A budget of the same owner that starts at the same second is changed; others stay. Requests for leases of these projects wait until the import is done.
         *
         *     For: operator.
         */
        post: operations["importBudgets"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/decisions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Search decisions
         * @description Newest first, from all replicas. `[service] decision_store` sets which decisions are stored, and for how long. A page may have fewer items than `limit`, even none, where few of many decisions match: only `next` shows whether there are more. Members see decisions about leases of their projects, without filters in audit mode.
         *
         *     For: operator, reader, manager, member.
         */
        get: operations["listDecisions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/decisions/{request_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show the decisions of a request
         * @description A request id may have several decisions, such as a check and its commit, and clients may send an id again. Newest first, with the verdict of every filter.
         *
         *     For: operator, reader, manager, member.
         */
        get: operations["getDecisions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/ledger/entries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the entries of the ledger
         * @description Changes of balances, newest first, with author, time and reason. A page may have fewer items than `limit`, even none, where few of many entries match: only `next` shows whether there are more.
         *
         *     For: operator, reader.
         */
        get: operations["listLedgerEntries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/projects": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List projects
         * @description Projects with leases or budgets, sorted by id. Members see their own projects.
         *
         *     For: operator, reader, manager, member.
         */
        get: operations["listProjects"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/projects/{project_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show a project
         * @description Its budgets, usage and open leases, and the limits that apply to it. For a project that is not in the ledger, the lists are empty.
         *
         *     For: operator, reader, manager, member.
         */
        get: operations["getProject"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/projects/{project_id}/calendar-links": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List links to the calendar of a project
         * @description The caller's own links, which this request renews; for managers of the project and operators, all links. Secrets are not included: the service does not store them.
         *
         *     For: operator, reader, manager, member.
         */
        get: operations["listCalendarLinks"];
        put?: never;
        /**
         * Make a link to the calendar of a project
         * @description Anyone with the link can read the leases of the project without a token. It belongs to the caller, who must be a user.
         *
         *     For: operator, reader, manager, member.
         */
        post: operations["makeCalendarLink"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/projects/{project_id}/calendar-links/{link_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke a link to the calendar of a project
         * @description The caller's own link; managers of the project and operators may revoke any.
         *
         *     For: operator, reader, manager, member.
         */
        delete: operations["revokeCalendarLink"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/projects/{project_id}/decisions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Search the decisions of a project
         * @description Newest first, from all replicas. `[service] decision_store` sets which decisions are stored, and for how long. A page may have fewer items than `limit`, even none, where few of many decisions match: only `next` shows whether there are more. Members see decisions about leases of their projects, without filters in audit mode.
         *
         *     For: operator, reader, manager, member.
         */
        get: operations["listProjectDecisions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/projects/{project_id}/estimate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Estimate the cost of a lease, and whether it would be allowed
         * @description Runs every filter on a lease that is not created, and records nothing. Filters that call other services run at most three times.
         *
         *     For: operator, reader, manager, member.
         */
        post: operations["estimateLease"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/projects/{project_id}/leases": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the leases of a project
         * @description In the order of recording, newest first. A page may have fewer items than `limit`, even none, where few of many leases match: only `next` shows whether there are more.
         *
         *     For: operator, reader, manager, member.
         */
        get: operations["listProjectLeases"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/projects/{project_id}/leases/{lease_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show a lease with its charges and its history
         * @description `lease_id` is Blazar's id, or `#` and the number of the row. The items are the history of the lease, newest first: decisions, if they are stored, and entries of the ledger. A page may have fewer items than `limit`, even none: only `next` shows whether there are more. Members see entries of budgets, without `who` and `reason`.
         *
         *     For: operator, reader, manager, member.
         */
        get: operations["getProjectLease"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/projects/{project_id}/leases/{lease_id}/estimate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Estimate the cost of a change of a lease, and whether it would be allowed
         * @description Like estimateLease, for a change of a lease in the ledger. Charges are the difference to its current charges. The lease of a suggestion is a change, in the format of this request.
         *
         *     For: operator, reader, manager, member.
         */
        post: operations["estimateLeaseChange"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/projects/{project_id}/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show the usage of a project
         * @description Charges of its leases to its budgets, and the resources that they reserved, in a time range. Leases that Blazar has not confirmed count with the maximum that they may take.
         *
         *     For: operator, reader, manager, member.
         */
        get: operations["getProjectUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/reports/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Report usage in a time range
         * @description For all projects, or for members their own; at most 5000 rows. The sums are exact, and from one snapshot: see "Reports of usage" in the documentation for the rules. In CSV, ids that a spreadsheet would run as a formula are prefixed with an apostrophe. Only one report is computed at a time.
         *
         *     For: operator, reader, manager, member.
         */
        get: operations["reportUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description A project or a user. */
        Account: {
            /** @description The name of the account's domain. */
            domain: string | null;
            id: string;
            /** @description The name in Keystone; null = not known. */
            name: string | null;
        } & {
            [key: string]: unknown;
        };
        /** @description An OpenAPI 3.1 document. */
        ApiDescription: {
            info: {
                [key: string]: unknown;
            };
            openapi: string;
            paths: {
                [key: string]: unknown;
            };
        } & {
            [key: string]: unknown;
        };
        Budget: {
            /**
             * @description Size in unit-hours, exactly as it was set.
             * @example 1000
             */
            amount: string;
            /** @description The latest change. */
            changed: {
                /**
                 * @description ISO 8601, UTC.
                 * @example 2026-12-01T09:00:00Z
                 */
                at: string;
                /** @description null = no reason was given. */
                reason: string | null;
                who: string;
            } & {
                [key: string]: unknown;
            };
            /**
             * @description For `If-Match`: changes with each change of the budget.
             * @example "42-1796083200000000"
             */
            etag: string;
            /** @description The same in millionths of a unit times seconds: whole numbers. */
            exact: {
                amount: string;
                taken: string;
            } & {
                [key: string]: unknown;
            };
            /** @example 17 */
            id: string;
            /**
             * @description Rounded down. Below 0 = the budget was reduced to less than was already taken.
             * @example 1234.5
             */
            left: string;
            project: components["schemas"]["Account"];
            /**
             * @description Past and planned usage of its leases; rounded up.
             * @example 1234.5
             */
            taken: string;
            /**
             * @description The label of the unit: the option `usage_budget_unit`.
             * @example node-hours
             */
            unit: string;
            /** @description null = the whole project. */
            user: components["schemas"]["Account"] | null;
            /**
             * @description ISO 8601, UTC.
             * @example 2026-12-01T09:00:00Z
             */
            valid_from: string;
            /**
             * @description End of validity, exclusive.
             * @example 2026-12-01T09:00:00Z
             */
            valid_until: string;
        } & {
            [key: string]: unknown;
        };
        BudgetAmendment: {
            /**
             * @description In unit-hours: a decimal number, 0 or more, with up to six decimals.
             * @example 1000
             */
            amount?: string | number;
            /**
             * @description The reason, for the history.
             * @example Second half of the grant
             */
            reason: string;
            /**
             * @description End of validity, exclusive. ISO 8601, to the second; without an offset it means UTC.
             * @example 2026-12-01T00:00:00Z
             */
            valid_until?: string;
        } & {
            [key: string]: unknown;
        };
        BudgetChanges: {
            items: ({
                /**
                 * @description Size in unit-hours, exactly as it was set.
                 * @example 1000
                 */
                amount: string;
                /**
                 * @description ISO 8601, UTC.
                 * @example 2026-12-01T09:00:00Z
                 */
                at: string;
                /** @example 17 */
                budget_id: string;
                /** @description The amount in millionths of a unit times seconds. */
                exact: {
                    amount: string;
                } & {
                    [key: string]: unknown;
                };
                /**
                 * @description Increases with each change.
                 * @example 17
                 */
                id: string;
                /** @enum {string} */
                operation: "set" | "removed";
                project: components["schemas"]["Account"];
                /** @description null = no reason was given. */
                reason: string | null;
                /**
                 * @description The label of the unit: the option `usage_budget_unit`.
                 * @example node-hours
                 */
                unit: string;
                /** @description null = the whole project. */
                user: components["schemas"]["Account"] | null;
                /**
                 * @description ISO 8601, UTC.
                 * @example 2026-12-01T09:00:00Z
                 */
                valid_from: string;
                /**
                 * @description End of validity, exclusive.
                 * @example 2026-12-01T09:00:00Z
                 */
                valid_until: string;
                who: string;
            } & {
                [key: string]: unknown;
            })[];
            /** @description Send it as `after` for the next page. null = this is the last one. Only this shows whether there are more. */
            next: string | null;
        } & {
            [key: string]: unknown;
        };
        BudgetCharges: {
            items: ({
                charges: ({
                    /** @example usage_budget/17 */
                    account: string;
                    /**
                     * @description Unit-hours, such as node-hours: a decimal number.
                     * @example 1234.5
                     */
                    amount: string;
                    /** @description The amount in millionths of a unit times seconds. */
                    exact: string;
                    /**
                     * @description ISO 8601, UTC.
                     * @example 2026-12-01T09:00:00Z
                     */
                    from: string;
                    /**
                     * @description ISO 8601, UTC.
                     * @example 2026-12-01T09:00:00Z
                     */
                    until: string;
                } & {
                    [key: string]: unknown;
                })[];
                /**
                 * @description The actual end, if it ended before its end date.
                 * @example 2026-12-01T09:00:00Z
                 */
                end: string;
                /** @description Blazar's id; null = not known yet. */
                lease_id: string | null;
                name: string;
                project: components["schemas"]["Account"];
                /**
                 * @description ISO 8601, UTC.
                 * @example 2026-12-01T09:00:00Z
                 */
                recorded_at: string;
                /** @description Empty = the request named no region. */
                region: string;
                /** @description The number of the lease in the ledger. */
                row: string;
                /**
                 * @description ISO 8601, UTC.
                 * @example 2026-12-01T09:00:00Z
                 */
                start: string;
                /** @enum {string} */
                state: "open" | "ended";
                user: components["schemas"]["Account"];
            } & {
                [key: string]: unknown;
            })[];
            /** @description Send it as `after` for the next page. null = this is the last one. Only this shows whether there are more. */
            next: string | null;
        } & {
            [key: string]: unknown;
        };
        BudgetFile: {
            budgets: ({
                amount: string | number;
                project_id: string;
                user_id?: string | null;
                valid_from: string;
                valid_until: string;
            } & {
                [key: string]: unknown;
            })[];
            /** @description Ignored. */
            unit?: string;
        } & {
            [key: string]: unknown;
        };
        BudgetGrant: {
            /**
             * @description In unit-hours: a decimal number, 0 or more, with up to six decimals.
             * @example 1000
             */
            amount?: string | number;
            /** @description The reason, shown to everyone who can see the request. */
            reason: string;
            /**
             * @description Default: as requested. ISO 8601, to the second; without an offset it means UTC.
             * @example 2026-12-01T00:00:00Z
             */
            valid_until?: string;
        } & {
            [key: string]: unknown;
        };
        BudgetRequest: {
            /**
             * @description The requested increase of the budget, in unit-hours.
             * @example 1000
             */
            amount: string;
            asked: {
                /**
                 * @description ISO 8601, UTC.
                 * @example 2026-12-01T09:00:00Z
                 */
                at: string;
                who: string;
            } & {
                [key: string]: unknown;
            };
            /** @description null = not endorsed. */
            endorsed: ({
                /**
                 * @description ISO 8601, UTC.
                 * @example 2026-12-01T09:00:00Z
                 */
                at: string;
                reason: string | null;
                who: string;
            } & {
                [key: string]: unknown;
            }) | null;
            /** @description The increase of the budget; null = not granted. */
            granted: ({
                /**
                 * @description Size in unit-hours, exactly as it was set.
                 * @example 1000
                 */
                amount: string;
                /** @example 17 */
                budget_id: string;
                /**
                 * @description ISO 8601, UTC.
                 * @example 2026-12-01T09:00:00Z
                 */
                valid_until: string;
            } & {
                [key: string]: unknown;
            }) | null;
            /** @example 17 */
            id: string;
            project: components["schemas"]["Account"];
            /** @description The reason for the request. */
            reason: string;
            /** @description The step that made it final; null = open. */
            settled: ({
                /**
                 * @description ISO 8601, UTC.
                 * @example 2026-12-01T09:00:00Z
                 */
                at: string;
                reason: string | null;
                who: string;
            } & {
                [key: string]: unknown;
            }) | null;
            /**
             * @description `requested` and `endorsed` are open; the others are final. `changed`: granted, but not as requested.
             * @enum {string}
             */
            state: "requested" | "endorsed" | "granted" | "changed" | "refused" | "withdrawn";
            /**
             * @description The label of the unit: the option `usage_budget_unit`.
             * @example node-hours
             */
            unit: string;
            /** @description null = the whole project. */
            user: components["schemas"]["Account"] | null;
            /**
             * @description The time until which it is needed.
             * @example 2026-12-01T09:00:00Z
             */
            valid_until: string;
        } & {
            [key: string]: unknown;
        };
        BudgetRequestRefusal: {
            /** @description The reason, shown to everyone who can see the request. */
            reason: string;
        } & {
            [key: string]: unknown;
        };
        BudgetRequests: {
            items: components["schemas"]["BudgetRequest"][];
            /** @description Send it as `after` for the next page. null = this is the last one. Only this shows whether there are more. */
            next: string | null;
        } & {
            [key: string]: unknown;
        };
        BudgetRequestStep: {
            /** @description The reason, shown to everyone who can see the request. */
            reason?: string;
        } & {
            [key: string]: unknown;
        };
        Budgets: {
            items: components["schemas"]["Budget"][];
            /** @description Send it as `after` for the next page. null = this is the last one. Only this shows whether there are more. */
            next: string | null;
        } & {
            [key: string]: unknown;
        };
        CalendarLinks: {
            items: ({
                is_own: boolean;
                link_id: string;
                /**
                 * @description ISO 8601, UTC.
                 * @example 2026-12-01T09:00:00Z
                 */
                made_at: string;
                /** @description The owner, as a label. */
                owner: string;
                /**
                 * @description 30 days after the owner last read this list with the right to see the project.
                 * @example 2026-12-01T09:00:00Z
                 */
                works_until: string;
            } & {
                [key: string]: unknown;
            })[];
            /** @description Send it as `after` for the next page. null = this is the last one. Only this shows whether there are more. */
            next: string | null;
        } & {
            [key: string]: unknown;
        };
        /** @description The verdict of every filter, the cost of the lease and, if it is refused, similar leases that would be allowed, most similar first. searched: for a refused lease, the alternatives that were searched for. */
        ChangeEstimate: {
            allowed: boolean;
            charges: ({
                /**
                 * @example usage_budget/17
                 * @example max_leases/project
                 */
                account: string;
                amount: string;
                filter: string;
                /** @enum {string} */
                kind: "usage" | "held";
                left: string | null;
                limit: string | null;
                /** @enum {string} */
                precision: "exact" | "at-most" | "about";
                taken: string;
            } & {
                [key: string]: unknown;
            })[];
            filter: string | null;
            filters: ({
                audit: boolean;
                duration_ms: number;
                filter: string;
                message: string | null;
                /** @enum {string} */
                outcome: "allowed" | "changed" | "rejected" | "failed" | "allowed-on-error" | "bypassed";
                rules?: ({
                    audit: boolean;
                    /** @enum {string} */
                    outcome: "rejected" | "failed";
                    rule: string;
                } & {
                    [key: string]: unknown;
                })[];
            } & {
                [key: string]: unknown;
            })[];
            message: string | null;
            notes: string[];
            /** @enum {string} */
            outcome: "allowed" | "changed" | "rejected" | "failed" | "allowed-on-error" | "bypassed" | "exempt" | "audit";
            project: components["schemas"]["Account"];
            searched: string | null;
            suggestions: ({
                /** @enum {string} */
                change: "shorter" | "smaller" | "later" | "smaller-shorter" | "smaller-later" | "shorter-later";
                charges: ({
                    /**
                     * @example usage_budget/17
                     * @example max_leases/project
                     */
                    account: string;
                    amount: string;
                    filter: string;
                    /** @enum {string} */
                    kind: "usage" | "held";
                    left: string | null;
                    limit: string | null;
                    /** @enum {string} */
                    precision: "exact" | "at-most" | "about";
                    taken: string;
                } & {
                    [key: string]: unknown;
                })[];
                lease: components["schemas"]["LeaseChange"];
                text: string;
            } & {
                [key: string]: unknown;
            })[];
            user: components["schemas"]["Account"];
            warnings: string[];
        } & {
            [key: string]: unknown;
        };
        /** @description The user who sent the request. Blazar also sends `auth_url` and `region_name`. */
        Context: {
            project_id: string;
            user_id: string;
        } & {
            [key: string]: unknown;
        };
        /** @description A lease that is about to be created. It has a start and an end. */
        CreateRequest: ({
            context: components["schemas"]["Context"];
            lease: components["schemas"]["Lease"];
        } & {
            [key: string]: unknown;
        }) & {
            lease: {
                reservations?: unknown;
            };
        };
        Decision: {
            allowed: boolean;
            /** @description The request of a refused lease. */
            asked: ({
                /**
                 * @description ISO 8601, UTC.
                 * @example 2026-12-01T09:00:00Z
                 */
                end: string;
                /** @description Without allocations and attributes that Blazar adds. null = not kept: more than 20, or more than 4 KiB. */
                reservations: {
                    [key: string]: unknown;
                }[] | null;
                /**
                 * @description ISO 8601, UTC.
                 * @example 2026-12-01T09:00:00Z
                 */
                start: string;
            } & {
                [key: string]: unknown;
            }) | null;
            /** @description null for members. */
            duration_ms: number | null;
            /** @description The filter that caused the outcome. */
            filter: string | null;
            filters: ({
                audit: boolean;
                /** @description Changes that a policy of SkyPilot made, or would have made; truncated, and without secrets. `before` and `after` are null where there is no value. */
                changes: ({
                    after: string | null;
                    before: string | null;
                    path: string;
                } & {
                    [key: string]: unknown;
                })[];
                /** @description Number of further changes. */
                changes_left_out: number;
                /** @description null for members. */
                duration_ms: number | null;
                filter: string;
                message: string | null;
                /** @enum {string} */
                outcome: "allowed" | "changed" | "rejected" | "failed" | "allowed-on-error" | "bypassed";
            } & {
                [key: string]: unknown;
            })[];
            /** @description The number of its configuration. null for members. */
            generation: number | null;
            /** @description Whether this decision counts as a launch of SkyPilot; null = not SkyPilot. */
            launch: boolean | null;
            lease_id: string | null;
            lease_name: string | null;
            /** @description The message for the user; null = allowed. */
            message: string | null;
            /** @enum {string} */
            operation: "create" | "update" | "commit-create" | "commit-update" | "end" | "skypilot.validate" | "skypilot.optimize" | "skypilot.launch" | "skypilot.exec" | "skypilot.jobs.launch" | "skypilot.jobs.launch_controller" | "skypilot.jobs.pool_apply" | "skypilot.jobs.launch_cluster" | "skypilot.serve.up" | "skypilot.serve.launch_controller" | "skypilot.serve.update" | "skypilot.serve.launch_replica" | "skypilot.other" | "skypilot.bypass" | "kubernetes.admission" | "kubernetes.validation";
            /** @enum {string} */
            outcome: "allowed" | "changed" | "rejected" | "failed" | "allowed-on-error" | "bypassed" | "exempt" | "audit";
            project: components["schemas"]["Account"] | null;
            /** @description The replica that decided. null for members. */
            replica: string | null;
            request_id: string;
            /** @description The side of SkyPilot that sent the request; null = not SkyPilot. */
            side: ("client" | "server") | null;
            /**
             * @description ISO 8601, UTC.
             * @example 2026-12-01T09:00:00Z
             */
            time: string;
            user: components["schemas"]["Account"] | null;
            /** @description Empty for members. */
            warnings: string[];
        } & {
            [key: string]: unknown;
        };
        Decisions: {
            items: components["schemas"]["Decision"][];
            /** @description Send it as `after` for the next page. null = this is the last one. Only this shows whether there are more. */
            next: string | null;
        } & {
            [key: string]: unknown;
        };
        /** @description A lease that has ended. Its dates may be missing. */
        EndRequest: {
            context: components["schemas"]["Context"];
            lease: components["schemas"]["Lease"];
        } & {
            [key: string]: unknown;
        };
        /** @description The verdict of every filter, the cost of the lease and, if it is refused, similar leases that would be allowed, most similar first. searched: for a refused lease, the alternatives that were searched for. */
        Estimate: {
            allowed: boolean;
            charges: ({
                /**
                 * @example usage_budget/17
                 * @example max_leases/project
                 */
                account: string;
                amount: string;
                filter: string;
                /** @enum {string} */
                kind: "usage" | "held";
                left: string | null;
                limit: string | null;
                /** @enum {string} */
                precision: "exact" | "at-most" | "about";
                taken: string;
            } & {
                [key: string]: unknown;
            })[];
            filter: string | null;
            filters: ({
                audit: boolean;
                duration_ms: number;
                filter: string;
                message: string | null;
                /** @enum {string} */
                outcome: "allowed" | "changed" | "rejected" | "failed" | "allowed-on-error" | "bypassed";
                rules?: ({
                    audit: boolean;
                    /** @enum {string} */
                    outcome: "rejected" | "failed";
                    rule: string;
                } & {
                    [key: string]: unknown;
                })[];
            } & {
                [key: string]: unknown;
            })[];
            message: string | null;
            notes: string[];
            /** @enum {string} */
            outcome: "allowed" | "changed" | "rejected" | "failed" | "allowed-on-error" | "bypassed" | "exempt" | "audit";
            project: components["schemas"]["Account"];
            searched: string | null;
            suggestions: ({
                /** @enum {string} */
                change: "shorter" | "smaller" | "later" | "smaller-shorter" | "smaller-later" | "shorter-later";
                charges: ({
                    /**
                     * @example usage_budget/17
                     * @example max_leases/project
                     */
                    account: string;
                    amount: string;
                    filter: string;
                    /** @enum {string} */
                    kind: "usage" | "held";
                    left: string | null;
                    limit: string | null;
                    /** @enum {string} */
                    precision: "exact" | "at-most" | "about";
                    taken: string;
                } & {
                    [key: string]: unknown;
                })[];
                /** @description A lease as it is sent to Blazar. */
                lease: {
                    /**
                     * @description In UTC, to the minute.
                     * @example 2026-12-01 09:00
                     * @example now
                     */
                    end_date: string;
                    name?: string;
                    /** @default [] */
                    reservations: ({
                        /** @description The number of instances or addresses. */
                        amount?: number | string;
                        /** @description The maximum number of hosts. */
                        max?: number;
                        /** @description The minimum number of hosts. */
                        min?: number;
                        /** @description physical:host, virtual:instance, flavor:instance, virtual:floatingip, or another that Blazar has a plug-in for. */
                        resource_type: string;
                    } & {
                        [key: string]: unknown;
                    })[];
                    /**
                     * @description In UTC, to the minute; `now` = the current minute.
                     * @example 2026-12-01 09:00
                     * @example now
                     */
                    start_date: string;
                } & {
                    [key: string]: unknown;
                };
                text: string;
            } & {
                [key: string]: unknown;
            })[];
            user: components["schemas"]["Account"];
            warnings: string[];
        } & {
            [key: string]: unknown;
        };
        ExportedBudgets: string;
        /** @description A fault of the service. The cause is only in the log. */
        Fault: {
            /** @description The cause is in the log under this id. */
            request_id: string;
        } & {
            [key: string]: unknown;
        };
        /** @description The process responds. */
        Health: {
            /** @constant */
            status: "ok";
        } & {
            [key: string]: unknown;
        };
        ImportRefusal: {
            changed?: number;
            /** @description The same as `message`. */
            detail: string;
            dry_run?: boolean;
            field?: string;
            lines?: ({
                amount: string;
                /** @description The existing budget that is changed. */
                before: ({
                    amount: string;
                    /**
                     * @description ISO 8601, UTC.
                     * @example 2026-12-01T09:00:00Z
                     */
                    valid_until: string;
                } & {
                    [key: string]: unknown;
                }) | null;
                /** @description In CSV the line; in JSON the number of the budget, from 1. */
                line: number;
                /** @enum {string} */
                outcome: "set" | "changed" | "unchanged";
                project_id: string;
                user_id: string | null;
                /**
                 * @description ISO 8601, UTC.
                 * @example 2026-12-01T09:00:00Z
                 */
                valid_from: string;
                /**
                 * @description ISO 8601, UTC.
                 * @example 2026-12-01T09:00:00Z
                 */
                valid_until: string;
            } & {
                [key: string]: unknown;
            })[];
            message: string;
            /** @description If there are mistakes, nothing is set. */
            mistakes?: ({
                field: string | null;
                line: number | null;
                message: string;
            } & {
                [key: string]: unknown;
            })[];
            /** @description Number of new budgets. */
            set?: number;
            status: number;
            /** @description The status, in words. */
            title: string;
            /**
             * @description The status is the kind of error.
             * @constant
             */
            type: "about:blank";
            unchanged?: number;
        } & {
            [key: string]: unknown;
        };
        ImportReport: {
            changed: number;
            dry_run: boolean;
            lines: ({
                amount: string;
                /** @description The existing budget that is changed. */
                before: ({
                    amount: string;
                    /**
                     * @description ISO 8601, UTC.
                     * @example 2026-12-01T09:00:00Z
                     */
                    valid_until: string;
                } & {
                    [key: string]: unknown;
                }) | null;
                /** @description In CSV the line; in JSON the number of the budget, from 1. */
                line: number;
                /** @enum {string} */
                outcome: "set" | "changed" | "unchanged";
                project_id: string;
                user_id: string | null;
                /**
                 * @description ISO 8601, UTC.
                 * @example 2026-12-01T09:00:00Z
                 */
                valid_from: string;
                /**
                 * @description ISO 8601, UTC.
                 * @example 2026-12-01T09:00:00Z
                 */
                valid_until: string;
            } & {
                [key: string]: unknown;
            })[];
            /** @description The reason why nothing was set. */
            message?: string;
            /** @description If there are mistakes, nothing is set. */
            mistakes: ({
                field: string | null;
                line: number | null;
                message: string;
            } & {
                [key: string]: unknown;
            })[];
            /** @description Number of new budgets. */
            set: number;
            unchanged: number;
        } & {
            [key: string]: unknown;
        };
        /** @description What was expected, and what was received. */
        InvalidRequest: {
            /**
             * @description The first wrong field; empty for the whole body. Absent if the body is not JSON.
             * @example lease.start_date
             */
            field?: string;
            message: string;
        } & {
            [key: string]: unknown;
        };
        /** @description What is leased, and from when to when. */
        Lease: {
            end_date?: components["schemas"]["LeaseDate"] | null;
            /** @description The end, if there is no `end_date`. */
            end_time?: components["schemas"]["LeaseDate"] | null;
            reservations?: components["schemas"]["Reservation"][] | null;
            start_date?: components["schemas"]["LeaseDate"] | null;
        } & {
            [key: string]: unknown;
        };
        LeaseChange: {
            /**
             * @description In UTC, to the minute. Default: unchanged.
             * @example 2026-12-01 09:00
             * @example now
             */
            end_date?: string;
            /**
             * @description New numbers. Missing types stay unchanged.
             * @default []
             */
            reservations: ({
                /** @description The number of anything else. */
                amount?: number;
                /** @description The maximum number of hosts. */
                max?: number;
                /** @description The minimum number of hosts. Default: unchanged, or max. */
                min?: number;
                /**
                 * @description A type that the lease has reserved.
                 * @example physical:host
                 */
                resource_type: string;
            } & {
                [key: string]: unknown;
            })[];
            /**
             * @description In UTC, to the minute; `now` = the current minute. Only for a lease that has not begun. Default: unchanged.
             * @example 2026-12-01 09:00
             * @example now
             */
            start_date?: string;
        } & {
            [key: string]: unknown;
        };
        /**
         * @description An ISO 8601 date, or `YYYY-MM-DD HH:MM`. Without an offset it is UTC. Week dates, ordinal dates and the basic format are accepted too.
         * @example 2026-12-01T09:00:00
         * @example 2026-12-01 09:00
         * @example 2026-12-01T10:00:00.000000+01:00
         * @example 2026-12-01
         */
        LeaseDate: string;
        LeaseHistory: {
            items: ({
                /**
                 * @description ISO 8601, UTC.
                 * @example 2026-12-01T09:00:00Z
                 */
                at: string;
                decision: components["schemas"]["Decision"] | null;
                entry: ({
                    account: string;
                    /**
                     * @description ISO 8601, UTC.
                     * @example 2026-12-01T09:00:00Z
                     */
                    at: string;
                    /** @description The change of the balance: a whole number. */
                    delta: string;
                    /** @description Its number; increases, since entries are only added. */
                    entry: string;
                    lease_id: string | null;
                    /** @description The number of the lease in the ledger. */
                    lease_row: string;
                    operation: string;
                    project: components["schemas"]["Account"];
                    reason: string | null;
                    request_id: string | null;
                    /** @description The same in unit-hours, for accounts of budgets; null for others. */
                    unit_hours: string | null;
                    /** @description The owner of the lease. */
                    user: components["schemas"]["Account"];
                    who: string | null;
                } & {
                    [key: string]: unknown;
                }) | null;
            } & {
                [key: string]: unknown;
            })[];
            /** @description null = not in the ledger. */
            lease: ({
                /**
                 * @description The time of the last request for it.
                 * @example 2026-12-01T09:00:00Z
                 */
                changed_at: string;
                charges: ({
                    /** @example usage_budget/17 */
                    account: string;
                    /**
                     * @description Unit-hours, such as node-hours: a decimal number.
                     * @example 1234.5
                     */
                    amount: string;
                    /**
                     * @description ISO 8601, UTC.
                     * @example 2026-12-01T09:00:00Z
                     */
                    from: string;
                    /**
                     * @description ISO 8601, UTC.
                     * @example 2026-12-01T09:00:00Z
                     */
                    until: string;
                } & {
                    [key: string]: unknown;
                })[];
                /** @description false = not known whether its last change was made; the most expensive possible state is charged until Blazar has been read. */
                confirmed: boolean;
                /**
                 * @description Unit-hours that it takes from budgets; the maximum possible until Blazar has confirmed the lease.
                 * @example 1234.5
                 */
                cost: string;
                /**
                 * @description The actual end, if it ended before its end date.
                 * @example 2026-12-01T09:00:00Z
                 */
                end: string;
                /** @description Blazar's id; null = not known yet. */
                lease_id: string | null;
                name: string;
                /**
                 * @description ISO 8601, UTC.
                 * @example 2026-12-01T09:00:00Z
                 */
                recorded_at: string;
                /** @description Empty = the request named no region. */
                region: string;
                /** @description Requested number of each resource type. Empty = none, or recorded by a version that did not store it. */
                resources: {
                    [key: string]: unknown;
                };
                /** @description The number of the lease in the ledger. */
                row: string;
                /**
                 * @description ISO 8601, UTC.
                 * @example 2026-12-01T09:00:00Z
                 */
                start: string;
                /** @enum {string} */
                state: "pending" | "active" | "ended";
                user: components["schemas"]["Account"];
            } & {
                [key: string]: unknown;
            }) | null;
            /** @description Send it as `after` for the next page. null = this is the last one. Only this shows whether there are more. */
            next: string | null;
        } & {
            [key: string]: unknown;
        };
        Leases: {
            /** @description Older leases that `ledger compact` has folded into totals. Balances and budgets include them; they, their entries and their usage are not listed. null = none. */
            folded: ({
                /**
                 * @description All of them had ended before this time.
                 * @example 2026-12-01T09:00:00Z
                 */
                before: string;
                /** @description Number of leases. */
                leases: number;
            } & {
                [key: string]: unknown;
            }) | null;
            items: components["schemas"]["ListedLease"][];
            /** @description Send it as `after` for the next page. null = this is the last one. Only this shows whether there are more. */
            next: string | null;
        } & {
            [key: string]: unknown;
        };
        LedgerEntries: {
            /** @description Older leases that `ledger compact` has folded into totals. Balances and budgets include them; they, their entries and their usage are not listed. null = none. */
            folded: ({
                /**
                 * @description All of them had ended before this time.
                 * @example 2026-12-01T09:00:00Z
                 */
                before: string;
                /** @description Number of leases. */
                leases: number;
            } & {
                [key: string]: unknown;
            }) | null;
            items: components["schemas"]["LedgerEntry"][];
            /** @description Send it as `after` for the next page. null = this is the last one. Only this shows whether there are more. */
            next: string | null;
        } & {
            [key: string]: unknown;
        };
        LedgerEntry: {
            account: string;
            /**
             * @description ISO 8601, UTC.
             * @example 2026-12-01T09:00:00Z
             */
            at: string;
            /** @description The change of the balance: a whole number. */
            delta: string;
            /** @description Its number; increases, since entries are only added. */
            entry: string;
            lease_id: string | null;
            /** @description The number of the lease in the ledger. */
            lease_row: string;
            operation: string;
            project: components["schemas"]["Account"];
            reason: string | null;
            request_id: string | null;
            /** @description The same in unit-hours, for accounts of budgets; null for others. */
            unit_hours: string | null;
            /** @description The owner of the lease. */
            user: components["schemas"]["Account"];
            who: string;
        } & {
            [key: string]: unknown;
        };
        ListedLease: {
            /**
             * @description Unit-hours that it takes from budgets; the maximum possible until Blazar has confirmed the lease.
             * @example 1234.5
             */
            cost: string;
            /**
             * @description The actual end, if it ended before its end date.
             * @example 2026-12-01T09:00:00Z
             */
            end: string;
            /** @description Blazar's id; null = not known yet. */
            lease_id: string | null;
            name: string;
            /**
             * @description ISO 8601, UTC.
             * @example 2026-12-01T09:00:00Z
             */
            recorded_at: string;
            /** @description Empty = the request named no region. */
            region: string;
            /** @description Requested number of each resource type. Empty = none, or recorded by a version that did not store it. */
            resources: {
                [key: string]: unknown;
            };
            /** @description The number of the lease in the ledger. */
            row: string;
            /**
             * @description ISO 8601, UTC.
             * @example 2026-12-01T09:00:00Z
             */
            start: string;
            /** @enum {string} */
            state: "pending" | "active" | "ended";
            user: components["schemas"]["Account"];
        } & {
            [key: string]: unknown;
        };
        /** @description The text format of Prometheus. */
        Metrics: string;
        NewBudget: {
            /**
             * @description In unit-hours: a decimal number, 0 or more, with up to six decimals.
             * @example 1000
             */
            amount: string | number;
            /** @description The id, or name@domain if Keystone is configured. */
            project_id: string;
            /**
             * @description The reason, for the history.
             * @example Second half of the grant
             */
            reason: string;
            /** @description The id, or name@domain. Default: the whole project. */
            user_id?: string | null;
            /**
             * @description Start of validity. ISO 8601, to the second; without an offset it means UTC.
             * @example 2026-12-01T00:00:00Z
             */
            valid_from: string;
            /**
             * @description End of validity, exclusive. ISO 8601, to the second; without an offset it means UTC.
             * @example 2026-12-01T00:00:00Z
             */
            valid_until: string;
        } & {
            [key: string]: unknown;
        };
        NewBudgetRequest: {
            /**
             * @description In unit-hours: a decimal number, 0 or more, with up to six decimals.
             * @example 1000
             */
            amount: string | number;
            /** @description The id, or name@domain if Keystone is configured. */
            project_id: string;
            /**
             * @description The reason.
             * @example A workshop
             */
            reason: string;
            /** @description The id, or name@domain, of a user with a budget of their own. Default: the whole project. */
            user_id?: string | null;
            /**
             * @description The time until which it is needed. ISO 8601, to the second; without an offset it means UTC.
             * @example 2026-12-01T00:00:00Z
             */
            valid_until: string;
        } & {
            [key: string]: unknown;
        };
        NewCalendarLink: {
            is_own: boolean;
            link_id: string;
            /**
             * @description ISO 8601, UTC.
             * @example 2026-12-01T09:00:00Z
             */
            made_at: string;
            /** @description The owner, as a label. */
            owner: string;
            /** @description A path of this service: GET returns `text/calendar` without a token, or 404 once the link is no longer valid. It contains a secret. */
            path: string;
            /**
             * @description 30 days after the owner last read this list with the right to see the project.
             * @example 2026-12-01T09:00:00Z
             */
            works_until: string;
        } & {
            [key: string]: unknown;
        };
        /** @description HTML. */
        Page: string;
        /** @description An error of the API: problem details of RFC 9457. */
        Problem: {
            /** @description The same as `message`. */
            detail: string;
            /**
             * @description The parameter, header or part of the body that is wrong; empty for the whole body.
             * @example valid_until
             */
            field?: string;
            message: string;
            /** @description The cause is in the log under this id. */
            request_id?: string;
            status: number;
            /** @description The status, in words. */
            title: string;
            /**
             * @description The status is the kind of error.
             * @constant
             */
            type: "about:blank";
        } & {
            [key: string]: unknown;
        };
        Project: {
            /** @description Budgets in force now, those of the project first; at most 100. */
            budgets: ({
                /**
                 * @description Size in unit-hours, exactly as it was set.
                 * @example 1000
                 */
                amount: string;
                /** @description The latest change. */
                changed: {
                    /**
                     * @description ISO 8601, UTC.
                     * @example 2026-12-01T09:00:00Z
                     */
                    at: string;
                    /** @description null = no reason was given. */
                    reason: string | null;
                    who: string;
                } & {
                    [key: string]: unknown;
                };
                /**
                 * @description For `If-Match`: changes with each change of the budget.
                 * @example "42-1796083200000000"
                 */
                etag: string;
                /** @description The same in millionths of a unit times seconds: whole numbers. */
                exact: {
                    amount: string;
                    taken: string;
                } & {
                    [key: string]: unknown;
                };
                /** @example 17 */
                id: string;
                /**
                 * @description Rounded down. Below 0 = the budget was reduced to less than was already taken.
                 * @example 1234.5
                 */
                left: string;
                /** @description The part of `taken` that pending and active leases will still use. null = too many leases to compute it. */
                planned: string | null;
                project: components["schemas"]["Account"];
                /**
                 * @description Past and planned usage of its leases; rounded up.
                 * @example 1234.5
                 */
                taken: string;
                /**
                 * @description The label of the unit: the option `usage_budget_unit`.
                 * @example node-hours
                 */
                unit: string;
                /** @description null = the whole project. */
                user: components["schemas"]["Account"] | null;
                /**
                 * @description ISO 8601, UTC.
                 * @example 2026-12-01T09:00:00Z
                 */
                valid_from: string;
                /**
                 * @description End of validity, exclusive.
                 * @example 2026-12-01T09:00:00Z
                 */
                valid_until: string;
            } & {
                [key: string]: unknown;
            })[];
            /** @description Whether leases of the project are allowed without checks. */
            exempt: boolean;
            has_more_budgets: boolean;
            has_more_open_leases: boolean;
            /** @description The enabled filters, in their order, with the options that apply. */
            limits: ({
                /** @description true = the filter only warns. */
                audit: boolean;
                filter: string;
                options: ({
                    /** @description Whether the default applies. */
                    default: boolean;
                    description: string;
                    /** @description Whether the value is hidden from members. */
                    hidden: boolean;
                    option: string;
                    /**
                     * @description Where the option is set; null for members.
                     * @example /etc/blazar/blazar.conf:7
                     */
                    origin: string | null;
                    unit: string | null;
                    /** @description null = not set, or hidden. Of limits of single accounts, only those that concern the project. Secrets are ****. */
                    value: unknown;
                } & {
                    [key: string]: unknown;
                })[];
            } & {
                [key: string]: unknown;
            })[];
            /** @description The newest 20 pending and active leases. */
            open_leases: components["schemas"]["ListedLease"][];
            project: components["schemas"]["Account"];
            /**
             * @description The unit of budgets.
             * @example node-hours
             */
            unit: string;
            /** @description Over the validity of the project's budget in force, but at most 400 days around now; without a budget, over the last 30 days. */
            usage: {
                by_resource_type: components["schemas"]["Usage"];
                by_user: components["schemas"]["Usage"];
            } & {
                [key: string]: unknown;
            };
        } & {
            [key: string]: unknown;
        };
        Projects: {
            items: ({
                /** @description The project's own budget that is in force now; null = none. */
                budget: ({
                    /**
                     * @description Unit-hours, such as node-hours: a decimal number.
                     * @example 1234.5
                     */
                    amount: string;
                    /**
                     * @description Unit-hours, such as node-hours: a decimal number.
                     * @example 1234.5
                     */
                    left: string;
                    /**
                     * @description Unit-hours, such as node-hours: a decimal number.
                     * @example 1234.5
                     */
                    taken: string;
                    /**
                     * @description ISO 8601, UTC.
                     * @example 2026-12-01T09:00:00Z
                     */
                    until: string;
                } & {
                    [key: string]: unknown;
                }) | null;
                /** @description Pending and active leases; at most 1000 are counted. */
                open_leases: number;
                project: components["schemas"]["Account"];
            } & {
                [key: string]: unknown;
            })[];
            /** @description Send it as `after` for the next page. null = this is the last one. Only this shows whether there are more. */
            next: string | null;
        } & {
            [key: string]: unknown;
        };
        /** @description Whether the service is ready for requests. */
        Readiness: {
            /** @description The number of the current configuration: 1 at the start, one more with each reload. */
            generation: number;
            /** @description The scheduling policies of the cluster. Absent unless source = cluster. */
            policies?: {
                /** @description Their maximum age in seconds: 0 = changes are followed; null = not read yet. */
                age_seconds: number | null;
                /** @description Why changes are not followed; null = they are. */
                problem: string | null;
                /**
                 * @description `starting`: not read yet. `current`: changes are followed. `behind`: the API server is unavailable, and the policies that were read last are enforced. `stale`: these are older than `cluster_stale_after`, and every pod is refused.
                 * @enum {string}
                 */
                state: "starting" | "current" | "behind" | "stale";
            } & {
                [key: string]: unknown;
            };
            /** @description File, line and option of each mistake, which the log and the console explain; or the reason why policies are not known. */
            problems: string[];
            /**
             * @description `draining`: the service is about to stop. `configuration not valid`: the configuration that was read last has mistakes, and the previous one is in force. `policies not known`: every pod is refused, since the scheduling policies of the cluster are not known yet, or too old.
             * @enum {string}
             */
            status: "ready" | "draining" | "configuration not valid" | "policies not known";
        } & {
            [key: string]: unknown;
        };
        /** @description The reason. */
        Refusal: {
            /** @description With `403`, a message for the user of the lease. */
            message: string;
        } & {
            [key: string]: unknown;
        };
        /** @description Resources of one kind. */
        Reservation: {
            /** @description The hosts, addresses, … that were found for it, each with its attributes. */
            allocations?: {
                [key: string]: unknown;
            }[] | null;
            /**
             * @description The kind of resource; its plug-in defines further attributes. Required, except in an end, and in an update for a reservation whose `id` is in the current lease.
             * @example physical:host
             * @example virtual:instance
             * @example flavor:instance
             * @example virtual:floatingip
             * @example network
             */
            resource_type?: string;
        } & {
            [key: string]: unknown;
        };
        /** @description A lease that is about to be changed. One of the two leases has a start, and one an end. */
        UpdateRequest: ({
            context: components["schemas"]["Context"];
            /** @description The lease before the update. */
            current_lease: components["schemas"]["Lease"];
            /** @description The lease after the update. What does not change may be missing. */
            lease: components["schemas"]["Lease"];
        } & {
            [key: string]: unknown;
        }) & {
            current_lease: {
                reservations?: unknown;
            };
            lease: {
                reservations?: unknown;
            };
        };
        Usage: {
            /** @description Older leases that `ledger compact` has folded into totals. Balances and budgets include them; they, their entries and their usage are not listed. null = none. */
            folded: ({
                /**
                 * @description All of them had ended before this time.
                 * @example 2026-12-01T09:00:00Z
                 */
                before: string;
                /** @description Number of leases. */
                leases: number;
            } & {
                [key: string]: unknown;
            }) | null;
            /**
             * @description Everything from this time on is counted.
             * @example 2026-12-01T09:00:00Z
             */
            from: string;
            /** @enum {string} */
            group_by: "user" | "resource_type" | "day";
            /** @description Days by date, other groups by amount, largest first. */
            groups: ({
                /** @description Unit-hours taken from budgets in this time, past and planned. null for resource types. */
                amount: string | null;
                /**
                 * @description With group_by=day.
                 * @example 2026-12-01
                 */
                day?: string;
                leases: number;
                /**
                 * @description Hosts, instances and addresses times hours: a decimal number.
                 * @example 48
                 */
                resource_hours: string;
                /** @description With group_by=resource_type. */
                resource_type?: string;
                /** @description With group_by=user. */
                user?: components["schemas"]["Account"];
            } & {
                [key: string]: unknown;
            })[];
            /** @description Whether there are too many leases, or older ones are folded into totals: then `from` is later than requested, and the figures are exact from there on. */
            is_partial: boolean;
            /** @description Leases in this time that were recorded by a version that did not store resources: not in `resource_hours`. */
            leases_of_unknown_resources: number;
            /** @description The sum of all groups beyond 1000; null = no further groups. */
            others: ({
                /** @description Unit-hours taken from budgets in this time, past and planned. null for resource types. */
                amount: string | null;
                leases: number;
                /**
                 * @description Hosts, instances and addresses times hours: a decimal number.
                 * @example 48
                 */
                resource_hours: string;
            } & {
                [key: string]: unknown;
            }) | null;
            /**
             * @description ISO 8601, UTC.
             * @example 2026-12-01T09:00:00Z
             */
            until: string;
        } & {
            [key: string]: unknown;
        };
        UsageReport: {
            /** @enum {string} */
            by: "project" | "user" | "month" | "resource_type";
            /** @description Folded leases that may have been in this time: only amounts include them. null = none. */
            folded: ({
                /**
                 * @description All of them had ended before this time.
                 * @example 2026-12-01T09:00:00Z
                 */
                before: string;
                /** @description Number of leases. */
                leases: number;
            } & {
                [key: string]: unknown;
            }) | null;
            /**
             * @description ISO 8601, UTC.
             * @example 2026-12-01T09:00:00Z
             */
            from: string;
            /** @description Leases that were recorded by a version that did not store resources: they have no hours. */
            leases_of_unknown_resources: number;
            rows: ({
                /** @description Unit-hours taken from budgets of projects, past and planned. null for resource types. */
                amount: string | null;
                /** @description Leases that ended before their end date, or never began. */
                ended_early: number;
                /** @description The same in millionths of a unit times seconds: whole numbers whose sum is exact. */
                exact: ({
                    amount: string;
                    user_amount: string;
                } & {
                    [key: string]: unknown;
                }) | null;
                /** @description Leases in this time; for a type, those that reserve it. */
                leases: number;
                /**
                 * @description With by=month, in UTC.
                 * @example 2026-12
                 */
                month?: string;
                /** @description With by=project and by=user. */
                project?: components["schemas"]["Account"];
                /**
                 * @description Hosts, instances and addresses times hours that leases had reserved: a decimal number.
                 * @example 48
                 */
                resource_hours: string;
                /** @description With by=resource_type. */
                resource_type?: string;
                /**
                 * @description Hosts, instances and addresses times hours that these had still reserved when they ended: a decimal number.
                 * @example 48
                 */
                unused_hours: string;
                /** @description With by=user; null = folded leases whose users are unknown. */
                user?: components["schemas"]["Account"] | null;
                /** @description The same from budgets of users. Where a project and its user have budgets, both are charged for the same usage. */
                user_amount: string | null;
            } & {
                [key: string]: unknown;
            })[];
            /** @description Charges of folded leases, inside or outside of this time: not included in any row. */
            undated: {
                /** @description Unit-hours taken from budgets of projects, past and planned. null for resource types. */
                amount: string | null;
                exact: {
                    amount: string;
                    user_amount: string;
                } & {
                    [key: string]: unknown;
                };
                /** @description The same from budgets of users. Where a project and its user have budgets, both are charged for the same usage. */
                user_amount: string | null;
            } & {
                [key: string]: unknown;
            };
            unit: string;
            /**
             * @description ISO 8601, UTC.
             * @example 2026-12-01T09:00:00Z
             */
            until: string;
        } & {
            [key: string]: unknown;
        };
        /** @description A lease as it is sent to Blazar (POST /v1/leases). Other attributes are passed on. */
        WantedLease: {
            /**
             * @description In UTC, to the minute.
             * @example 2026-12-01 09:00
             * @example now
             */
            end_date: string;
            name?: string;
            /** @default [] */
            reservations: ({
                /** @description The number of instances or addresses. */
                amount?: number | string;
                /** @description The maximum number of hosts. */
                max?: number;
                /** @description The minimum number of hosts. */
                min?: number;
                /** @description physical:host, virtual:instance, flavor:instance, virtual:floatingip, or another that Blazar has a plug-in for. */
                resource_type: string;
            } & {
                [key: string]: unknown;
            })[];
            /**
             * @description In UTC, to the minute; `now` = the current minute.
             * @example 2026-12-01 09:00
             * @example now
             */
            start_date: string;
            /** @description The user of the lease; only operators and readers may set it. Default: the caller. */
            user_id?: string;
        } & {
            [key: string]: unknown;
        };
    };
    responses: {
        /** @description The lease is allowed. */
        Allowed: {
            headers: {
                "X-Enforcement-Generation": components["headers"]["X-Enforcement-Generation"];
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content?: never;
        };
        /** @description The body is longer than `body_limit`, as sent or decompressed. */
        ApiTooLarge: {
            headers: {
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description There were ten wrong tokens from this address within a minute. */
        ApiTooManyTokens: {
            headers: {
                "Retry-After": components["headers"]["Retry-After"];
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The path does not support this method. */
        ApiWrongMethod: {
            headers: {
                Allow: components["headers"]["Allow"];
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The content type is not JSON in UTF-8, or the encoding is not gzip, deflate or br. */
        ApiWrongType: {
            headers: {
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The request did not arrive within `deadline`. The connection is closed. */
        ArrivedTooSlowly: {
            headers: {
                [name: string]: unknown;
            };
            content?: never;
        };
        /** @description The lease is recorded. */
        Committed: {
            headers: {
                "X-Enforcement-Generation": components["headers"]["X-Enforcement-Generation"];
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content?: never;
        };
        /** @description This document. */
        Described: {
            headers: {
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ApiDescription"];
            };
        };
        /** @description A fault of the service. Nothing was decided, and nothing is allowed. */
        Faulty: {
            headers: {
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Fault"];
            };
        };
        /** @description The token of Keystone has none of `service_roles`. */
        Forbidden: {
            headers: {
                "X-Enforcement-Generation": components["headers"]["X-Enforcement-Generation"];
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Refusal"];
            };
        };
        /** @description The headers are longer than 16 KiB. The connection is closed. */
        HeadersTooLarge: {
            headers: {
                [name: string]: unknown;
            };
            content?: never;
        };
        /** @description The process responds. */
        Healthy: {
            headers: {
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Health"];
            };
        };
        /** @description The filters were notified. */
        Heard: {
            headers: {
                "X-Enforcement-Generation": components["headers"]["X-Enforcement-Generation"];
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content?: never;
        };
        /** @description Tokens are configured, and neither `X-Auth-Token` nor a session has a valid one: a login form. */
        Login: {
            headers: {
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "text/html": components["schemas"]["Page"];
            };
        };
        /** @description The metrics. */
        Measured: {
            headers: {
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "text/plain": components["schemas"]["Metrics"];
            };
        };
        /** @description The token does not give access to single budgets. Without a token, everything else is shown. */
        NoMetricsToken: {
            headers: {
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Refusal"];
            };
        };
        /** @description The token, or the cookie of the console, is missing or not valid. */
        NoPerson: {
            headers: {
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The body is not JSON, or not a request. */
        NoRequest: {
            headers: {
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["InvalidRequest"];
            };
        };
        /** @description The caller has no right to do this, or is not a member of the project. */
        NotAllowed: {
            headers: {
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description A fault of the service. Whether something was changed is unknown: read it again. */
        NotAnswered: {
            headers: {
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description A parameter, the body or a header is not as described; see `field`. */
        NotAsked: {
            headers: {
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description A shared limit was used up since the check, or the lease could not be recorded; or the token of Keystone has none of `service_roles`. */
        NotCommitted: {
            headers: {
                "X-Enforcement-Generation": components["headers"]["X-Enforcement-Generation"];
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Refusal"];
            };
        };
        /** @description The ledger or Keystone does not answer, or too many requests are under way. */
        NotNow: {
            headers: {
                "Retry-After": components["headers"]["Retry-After"];
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Tokens are configured, and `X-Auth-Token` is not one of them; nor, with `keystone_auth`, a valid token of Keystone. */
        NoToken: {
            headers: {
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Refusal"];
            };
        };
        /** @description The configuration is not valid, the scheduling policies of the cluster are not known, or the service is about to stop. */
        NotReady: {
            headers: {
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Readiness"];
            };
        };
        /** @description Too many decisions are under way and queued, or the request was queued too long; or Keystone does not answer, and the token is not cached. */
        OverloadedOrUnproven: {
            headers: {
                "Retry-After": components["headers"]["Retry-After"];
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Refusal"];
            };
        };
        /** @description The page. */
        Page: {
            headers: {
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "text/html": components["schemas"]["Page"];
            };
        };
        /** @description The configuration is valid, the scheduling policies of the cluster are known, and the service is not about to stop. */
        Ready: {
            headers: {
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Readiness"];
            };
        };
        /** @description A filter rejected the lease, or failed; or the token of Keystone has none of `service_roles`. */
        Rejected: {
            headers: {
                "X-Enforcement-Generation": components["headers"]["X-Enforcement-Generation"];
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Refusal"];
            };
        };
        /** @description The body is longer than `body_limit`, as sent or decompressed. */
        TooLarge: {
            headers: {
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Refusal"];
            };
        };
        /** @description There were ten wrong tokens from this address within a minute. */
        TooManyTokens: {
            headers: {
                "Retry-After": components["headers"]["Retry-After"];
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Refusal"];
            };
        };
        /** @description The path does not support this method. */
        WrongMethod: {
            headers: {
                Allow: components["headers"]["Allow"];
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Refusal"];
            };
        };
        /** @description The content type is not JSON in UTF-8, or the encoding is not gzip, deflate or br. */
        WrongType: {
            headers: {
                "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Refusal"];
            };
        };
    };
    parameters: {
        /** @description The id under which both sides log the request. Any other text is ignored. */
        RequestId: string;
    };
    requestBodies: never;
    headers: {
        /** @description The allowed methods. */
        Allow: string;
        /** @description Seconds. */
        "Retry-After": number;
        /** @description With `keystone_auth`: the URL of Keystone. */
        "WWW-Authenticate": string;
        /** @description The number of the configuration that decided: 1 at the start, one more with each reload. */
        "X-Enforcement-Generation": number;
        /** @description The id that the client sent, otherwise one of the service. */
        "X-Openstack-Request-Id": string;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    listBudgetRequests: {
        parameters: {
            query?: {
                /** @description `next` of the page before. */
                after?: string;
                /** @description Maximum number of items. Default: 50. */
                limit?: number;
                /** @description Only items of this project: its id, or name@domain. */
                project_id?: string;
                /** @description Only requests in this state; `open` = requested or endorsed. */
                state?: "requested" | "endorsed" | "granted" | "changed" | "refused" | "withdrawn" | "open";
                /** @description Only requests for this user: the id, or name@domain; for members who cannot set budgets, only their own. */
                user_id?: string;
            };
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page. */
            200: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BudgetRequests"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No filter that needs a ledger is enabled. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            /** @description Keystone has no account of this name. */
            422: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    requestBudget: {
        parameters: {
            query?: never;
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "project_id": "climate",
                 *       "amount": "50",
                 *       "valid_until": "2030-01-01T00:00:00Z",
                 *       "reason": "A workshop"
                 *     }
                 */
                "application/json": components["schemas"]["NewBudgetRequest"];
            };
        };
        responses: {
            /** @description The request is open. */
            201: {
                headers: {
                    /** @description Its URL. */
                    Location: string;
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BudgetRequest"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No filter that needs a ledger is enabled. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            /** @description The project has too many open requests, or has made too many within 24 hours. */
            409: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["ApiTooLarge"];
            415: components["responses"]["ApiWrongType"];
            /** @description A value is wrong: a date, an amount, a missing reason, an account that Keystone does not have, or a user without a budget of their own. */
            422: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    getBudgetRequest: {
        parameters: {
            query?: never;
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                request_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request. */
            200: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BudgetRequest"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No such request, or the caller may not see its project, or no enabled filter uses a ledger. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    endorseBudgetRequest: {
        parameters: {
            query?: never;
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                request_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "reason": "The workshop is part of the project"
                 *     }
                 */
                "application/json": components["schemas"]["BudgetRequestStep"];
            };
        };
        responses: {
            /** @description The request is endorsed. */
            200: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BudgetRequest"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No such request, or the caller may not see its project, or no enabled filter uses a ledger. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            /** @description The state of the request does not allow this step. */
            409: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["ApiTooLarge"];
            415: components["responses"]["ApiWrongType"];
            /** @description A value is wrong, the end has passed, or the budget cannot be changed this way. */
            422: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    grantBudgetRequest: {
        parameters: {
            query?: never;
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                request_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "amount": "40",
                 *       "reason": "What is left of the quarter"
                 *     }
                 */
                "application/json": components["schemas"]["BudgetGrant"];
            };
        };
        responses: {
            /** @description The budget is increased. */
            200: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BudgetRequest"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No such request, or the caller may not see its project, or no enabled filter uses a ledger. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            /** @description The state of the request does not allow this step. */
            409: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["ApiTooLarge"];
            415: components["responses"]["ApiWrongType"];
            /** @description A value is wrong, the end has passed, or the budget cannot be changed this way. */
            422: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    refuseBudgetRequest: {
        parameters: {
            query?: never;
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                request_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "reason": "Not before next quarter"
                 *     }
                 */
                "application/json": components["schemas"]["BudgetRequestRefusal"];
            };
        };
        responses: {
            /** @description The request is refused. */
            200: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BudgetRequest"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No such request, or the caller may not see its project, or no enabled filter uses a ledger. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            /** @description The state of the request does not allow this step. */
            409: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["ApiTooLarge"];
            415: components["responses"]["ApiWrongType"];
            /** @description A value is wrong, the end has passed, or the budget cannot be changed this way. */
            422: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    withdrawBudgetRequest: {
        parameters: {
            query?: never;
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                request_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "reason": "The workshop is part of the project"
                 *     }
                 */
                "application/json": components["schemas"]["BudgetRequestStep"];
            };
        };
        responses: {
            /** @description The request is withdrawn. */
            200: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BudgetRequest"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No such request, or the caller may not see its project, or no enabled filter uses a ledger. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            /** @description The state of the request does not allow this step. */
            409: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["ApiTooLarge"];
            415: components["responses"]["ApiWrongType"];
            /** @description A value is wrong, the end has passed, or the budget cannot be changed this way. */
            422: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    listBudgets: {
        parameters: {
            query?: {
                /** @description `next` of the page before. */
                after?: string;
                /** @description Maximum number of items. Default: 50. */
                limit?: number;
                /** @description Only items of this project: its id, or name@domain. */
                project_id?: string;
                /** @description Only budgets whose project id or user id contains this text, ignoring case. */
                search?: string;
                /** @description Only items of this user: the id, or name@domain; for members who cannot set budgets, only their own. */
                user_id?: string;
                /** @description Only budgets in force at this time. ISO 8601; without an offset it means UTC. */
                valid_at?: string;
            };
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page. */
            200: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Budgets"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No filter that needs a ledger is enabled. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            /** @description Keystone has no account of this name. */
            422: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    createBudget: {
        parameters: {
            query?: never;
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "project_id": "climate",
                 *       "user_id": "alice",
                 *       "valid_from": "2026-12-01T00:00:00Z",
                 *       "valid_until": "2027-01-01T00:00:00Z",
                 *       "amount": "50",
                 *       "reason": "A workshop"
                 *     }
                 */
                "application/json": components["schemas"]["NewBudget"];
            };
        };
        responses: {
            /** @description The budget is in force. */
            201: {
                headers: {
                    /** @description For `If-Match`: changes with each change of the budget. */
                    ETag: string;
                    /** @description Its URL. */
                    Location: string;
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Budget"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No filter that needs a ledger is enabled. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            /** @description A budget of the owner, perhaps this one, already covers part of that time: nothing is replaced. */
            409: {
                headers: {
                    /** @description The other budget. */
                    Location: string;
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["ApiTooLarge"];
            415: components["responses"]["ApiWrongType"];
            /** @description A value is wrong: a date, an amount, a missing reason, or an account that Keystone does not have; or the budget of a manager is not within those of the project. */
            422: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    getBudget: {
        parameters: {
            query?: never;
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                budget_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The budget. */
            200: {
                headers: {
                    /** @description For `If-Match`: changes with each change of the budget. */
                    ETag: string;
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Budget"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No such budget, or it was removed, or the caller may not see its project, or no enabled filter uses a ledger. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    removeBudget: {
        parameters: {
            query: {
                /** @description The reason, for the history. */
                reason: string;
            };
            header: {
                /** @description The ETag of the budget, as the caller last read it. */
                "If-Match": string;
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                budget_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The budget is removed. */
            204: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No such budget, or it was removed, or the caller may not see its project, or no enabled filter uses a ledger. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            /** @description The budget was changed since: the ETag is outdated. */
            412: {
                headers: {
                    /** @description For `If-Match`: changes with each change of the budget. */
                    ETag: string;
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description The reason is empty or too long. */
            422: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `If-Match` is missing. */
            428: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    amendBudget: {
        parameters: {
            query?: never;
            header: {
                /** @description The ETag of the budget, as the caller last read it. */
                "If-Match": string;
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                budget_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "amount": "80",
                 *       "reason": "More hosts than planned"
                 *     }
                 */
                "application/json": components["schemas"]["BudgetAmendment"];
            };
        };
        responses: {
            /** @description The budget as it is now. */
            200: {
                headers: {
                    /** @description For `If-Match`: changes with each change of the budget. */
                    ETag: string;
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Budget"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No such budget, or it was removed, or the caller may not see its project, or no enabled filter uses a ledger. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            /** @description A budget of the owner, perhaps this one, already covers part of that time: nothing is replaced. */
            409: {
                headers: {
                    /** @description The other budget. */
                    Location: string;
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description The budget was changed since: the ETag is outdated. */
            412: {
                headers: {
                    /** @description For `If-Match`: changes with each change of the budget. */
                    ETag: string;
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["ApiTooLarge"];
            415: components["responses"]["ApiWrongType"];
            /** @description A value is wrong: a date, an amount, a missing reason, or an account that Keystone does not have; or the budget of a manager is not within those of the project. */
            422: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `If-Match` is missing. */
            428: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    listChangesOfBudget: {
        parameters: {
            query?: {
                /** @description `next` of the page before. */
                after?: string;
                /** @description Maximum number of items. Default: 50. */
                limit?: number;
                /** @description Sort order. Default: newest first. */
                order?: "newest" | "oldest";
            };
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                budget_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page. */
            200: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BudgetChanges"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No filter that needs a ledger is enabled. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    listBudgetChanges: {
        parameters: {
            query?: {
                /** @description `next` of the page before. */
                after?: string;
                /** @description Maximum number of items. Default: 50. */
                limit?: number;
                /** @description Sort order. Default: newest first. */
                order?: "newest" | "oldest";
                /** @description Only items of this project: its id, or name@domain. */
                project_id?: string;
                /** @description Only items of this user: the id, or name@domain; for members who cannot set budgets, only their own. */
                user_id?: string;
            };
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page. */
            200: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BudgetChanges"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No filter that needs a ledger is enabled. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            /** @description Keystone has no account of this name. */
            422: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    listBudgetCharges: {
        parameters: {
            query: {
                /** @description `next` of the page before. */
                after?: string;
                /** @description Maximum number of items. Default: 50. */
                limit?: number;
                /** @description Its id, or name@domain. */
                project_id: string;
            };
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page. */
            200: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BudgetCharges"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No filter that needs a ledger is enabled. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            /** @description Keystone has no project of this name. */
            422: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    exportBudgets: {
        parameters: {
            query?: {
                /** @description Default: csv. */
                format?: "csv" | "json";
                /** @description Only items of this project: its id, or name@domain. */
                project_id?: string;
                /** @description Only budgets in force at this time. ISO 8601; without an offset it means UTC. */
                valid_at?: string;
            };
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file. */
            200: {
                headers: {
                    /** @description The file name. */
                    "Content-Disposition": string;
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        budgets: ({
                            amount: string;
                            /**
                             * @description Unit-hours, such as node-hours: a decimal number.
                             * @example 1234.5
                             */
                            left: string;
                            project_id: string;
                            /**
                             * @description Unit-hours, such as node-hours: a decimal number.
                             * @example 1234.5
                             */
                            taken: string;
                            user_id: string | null;
                            /**
                             * @description ISO 8601, UTC.
                             * @example 2026-12-01T09:00:00Z
                             */
                            valid_from: string;
                            /**
                             * @description ISO 8601, UTC.
                             * @example 2026-12-01T09:00:00Z
                             */
                            valid_until: string;
                        } & {
                            [key: string]: unknown;
                        })[];
                        unit: string;
                    } & {
                        [key: string]: unknown;
                    };
                    "text/csv": components["schemas"]["ExportedBudgets"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No filter that needs a ledger is enabled. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            /** @description Keystone has no project of this name. */
            422: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    importBudgets: {
        parameters: {
            query?: {
                /** @description true = only report the budgets that would be set, and all mistakes. Default: false. */
                dry_run?: "true" | "false";
                /** @description The reason, for the history. Required unless it is a dry run. */
                reason?: string;
            };
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "budgets": [
                 *         {
                 *           "project_id": "climate",
                 *           "user_id": null,
                 *           "valid_from": "2027-01-01T00:00:00Z",
                 *           "valid_until": "2028-01-01T00:00:00Z",
                 *           "amount": "1000"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["BudgetFile"];
                /**
                 * @example project_id,user_id,valid_from,valid_until,amount
                 *     climate,,2027-01-01,2028-01-01,1000
                 *     climate,alice,2027-01-01,2027-07-01,50
                 */
                "text/csv": string;
            };
        };
        responses: {
            /** @description The budgets that were set, or would be. */
            200: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImportReport"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No filter that needs a ledger is enabled. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            413: components["responses"]["ApiTooLarge"];
            415: components["responses"]["ApiWrongType"];
            /** @description The file has mistakes, or the reason is missing: nothing was set. */
            422: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImportRefusal"];
                    "application/problem+json": components["schemas"]["ImportRefusal"];
                };
            };
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    listDecisions: {
        parameters: {
            query?: {
                /** @description `next` of the page before. */
                after?: string;
                /** @description Only decisions in which this filter did more than allow. */
                filter?: string;
                /** @description Only decisions from this time on. ISO 8601; without an offset it means UTC. */
                from?: string;
                /** @description Only decisions about this lease. */
                lease_id?: string;
                /** @description Maximum number of items. Default: 50. */
                limit?: number;
                /** @description Only decisions about this operation. */
                operation?: "create" | "update" | "commit-create" | "commit-update" | "end" | "skypilot.validate" | "skypilot.optimize" | "skypilot.launch" | "skypilot.exec" | "skypilot.jobs.launch" | "skypilot.jobs.launch_controller" | "skypilot.jobs.pool_apply" | "skypilot.jobs.launch_cluster" | "skypilot.serve.up" | "skypilot.serve.launch_controller" | "skypilot.serve.update" | "skypilot.serve.launch_replica" | "skypilot.other" | "skypilot.bypass" | "kubernetes.admission" | "kubernetes.validation";
                /** @description Only decisions with this outcome. `refused` = rejected and failed. */
                outcome?: "allowed" | "changed" | "rejected" | "failed" | "allowed-on-error" | "bypassed" | "exempt" | "audit" | "refused";
                /** @description Only decisions about this project: its id, or `name@domain`. */
                project_id?: string;
                /** @description Only requests of SkyPilot from this side. */
                side?: "client" | "server";
                /** @description Only decisions before this time. ISO 8601; without an offset it means UTC. */
                until?: string;
                /** @description Only decisions about this user: the id, or `name@domain`. */
                user_id?: string;
            };
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of decisions. */
            200: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Decisions"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No decisions are stored. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    getDecisions: {
        parameters: {
            query?: {
                /** @description `next` of the page before. */
                after?: string;
                /** @description Maximum number of items. Default: 50. */
                limit?: number;
            };
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                request_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of decisions. */
            200: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Decisions"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No decisions are stored, or none with this id that the caller may see. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    listLedgerEntries: {
        parameters: {
            query?: {
                /** @description Only entries of this account, such as max_leases/project. */
                account?: string;
                /** @description `next` of the page before. */
                after?: string;
                /** @description Only entries from this time on. ISO 8601; without an offset it means UTC. */
                from?: string;
                /** @description Only entries of the lease with this id of Blazar. */
                lease_id?: string;
                /** @description Maximum number of items. Default: 50. */
                limit?: number;
                /** @description Only entries of this operation: create, update, end, end-date, undo, reconcile, reopen. */
                operation?: string;
                /** @description Only entries of this project: its id, or name@domain. */
                project_id?: string;
                /** @description Only entries of this request. */
                request_id?: string;
                /** @description The name of `from` before version 1.1. ISO 8601; without an offset it means UTC. */
                since?: string;
                /** @description Only entries before this time. ISO 8601; without an offset it means UTC. */
                until?: string;
            };
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of entries. */
            200: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LedgerEntries"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No filter that needs a ledger is enabled. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            /** @description Keystone has no account of this name. */
            422: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    listProjects: {
        parameters: {
            query?: {
                /** @description `next` of the page before. */
                after?: string;
                /** @description Maximum number of items. Default: 50. */
                limit?: number;
                /** @description Only projects whose id contains this text, ignoring case. */
                search?: string;
            };
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of projects. */
            200: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Projects"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No filter that needs a ledger is enabled. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    getProject: {
        parameters: {
            query?: never;
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                project_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The project. */
            200: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Project"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No filter that needs a ledger is enabled. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    listCalendarLinks: {
        parameters: {
            query?: {
                /** @description `next` of the page before. */
                after?: string;
                /** @description Maximum number of items. Default: 50. */
                limit?: number;
            };
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                project_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of links. */
            200: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CalendarLinks"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No filter that needs a ledger is enabled. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    makeCalendarLink: {
        parameters: {
            query?: never;
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                project_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The link. Its path is shown only once. */
            201: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewCalendarLink"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No filter that needs a ledger is enabled. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            /** @description The caller has the maximum number of links, or its token belongs to no user. */
            422: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    revokeCalendarLink: {
        parameters: {
            query?: never;
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                link_id: string;
                project_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The link is revoked. */
            204: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No such link, or it belongs to another user, or no enabled filter uses a ledger. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    listProjectDecisions: {
        parameters: {
            query?: {
                /** @description `next` of the page before. */
                after?: string;
                /** @description Only decisions in which this filter did more than allow. */
                filter?: string;
                /** @description Only decisions from this time on. ISO 8601; without an offset it means UTC. */
                from?: string;
                /** @description Only decisions about this lease. */
                lease_id?: string;
                /** @description Maximum number of items. Default: 50. */
                limit?: number;
                /** @description Only decisions about this operation. */
                operation?: "create" | "update" | "commit-create" | "commit-update" | "end" | "skypilot.validate" | "skypilot.optimize" | "skypilot.launch" | "skypilot.exec" | "skypilot.jobs.launch" | "skypilot.jobs.launch_controller" | "skypilot.jobs.pool_apply" | "skypilot.jobs.launch_cluster" | "skypilot.serve.up" | "skypilot.serve.launch_controller" | "skypilot.serve.update" | "skypilot.serve.launch_replica" | "skypilot.other" | "skypilot.bypass" | "kubernetes.admission" | "kubernetes.validation";
                /** @description Only decisions with this outcome. `refused` = rejected and failed. */
                outcome?: "allowed" | "changed" | "rejected" | "failed" | "allowed-on-error" | "bypassed" | "exempt" | "audit" | "refused";
                /** @description Only requests of SkyPilot from this side. */
                side?: "client" | "server";
                /** @description Only decisions before this time. ISO 8601; without an offset it means UTC. */
                until?: string;
                /** @description Only decisions about this user: the id, or `name@domain`. */
                user_id?: string;
            };
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                project_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of decisions. */
            200: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Decisions"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No decisions are stored. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    estimateLease: {
        parameters: {
            query?: never;
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                project_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "training",
                 *       "start_date": "2027-01-11 09:00",
                 *       "end_date": "2027-01-15 17:00",
                 *       "reservations": [
                 *         {
                 *           "resource_type": "physical:host",
                 *           "min": 1,
                 *           "max": 4,
                 *           "hypervisor_properties": "",
                 *           "resource_properties": ""
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["WantedLease"];
            };
        };
        responses: {
            /** @description The estimate. */
            200: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Estimate"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            413: components["responses"]["ApiTooLarge"];
            415: components["responses"]["ApiWrongType"];
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    listProjectLeases: {
        parameters: {
            query?: {
                /** @description `next` of the page before. */
                after?: string;
                /** @description Only leases that end after this time. ISO 8601; without an offset it means UTC. */
                from?: string;
                /** @description Maximum number of items. Default: 50. */
                limit?: number;
                /** @description Only leases in this state. `open` = pending and active. */
                state?: "pending" | "active" | "open" | "ended";
                /** @description Only leases that start before this time. ISO 8601; without an offset it means UTC. */
                until?: string;
                /** @description Only leases of this user: the id, or name@domain; for members who cannot set budgets, only their own. */
                user_id?: string;
            };
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                project_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of leases. */
            200: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Leases"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No filter that needs a ledger is enabled. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            /** @description Keystone has no account of this name. */
            422: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    getProjectLease: {
        parameters: {
            query?: {
                /** @description `next` of the page before. */
                after?: string;
                /** @description Maximum number of items. Default: 50. */
                limit?: number;
            };
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                lease_id: string;
                project_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of its history. */
            200: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LeaseHistory"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No such lease, or there is neither a ledger nor stored decisions. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            /** @description Several regions have a lease with this id: use the number of its row. */
            409: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    estimateLeaseChange: {
        parameters: {
            query?: never;
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                lease_id: string;
                project_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "end_date": "2027-01-16 17:00",
                 *       "reservations": [
                 *         {
                 *           "resource_type": "physical:host",
                 *           "max": 2
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["LeaseChange"];
            };
        };
        responses: {
            /** @description The estimate. */
            200: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChangeEstimate"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description The project has no such lease, or no filter that needs a ledger is enabled. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            /** @description The lease has ended, or the ledger does not have its reservations. */
            409: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["ApiTooLarge"];
            415: components["responses"]["ApiWrongType"];
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    getProjectUsage: {
        parameters: {
            query?: {
                /** @description To the second. Default: 30 days before `until`. ISO 8601; without an offset it means UTC. */
                from?: string;
                /** @description Default: user. Days are in UTC. */
                group_by?: "user" | "resource_type" | "day";
                /** @description To the second, at most 400 days after `from`. Default: now. ISO 8601; without an offset it means UTC. */
                until?: string;
            };
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                project_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The usage. */
            200: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Usage"];
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No filter that needs a ledger is enabled. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
    reportUsage: {
        parameters: {
            query?: {
                /** @description Default: project. user = each user in each project. */
                by?: "project" | "user" | "month" | "resource_type";
                /** @description Default: json. focus = CSV with the columns of FOCUS 1.2. */
                format?: "json" | "csv" | "focus";
                /** @description To the second. Default: the start of the month of `until`. ISO 8601; without an offset it means UTC. */
                from?: string;
                /** @description Only items of this project: its id, or name@domain. */
                project_id?: string;
                /** @description To the second, at most 3660 days after `from`. Default: now. ISO 8601; without an offset it means UTC. */
                until?: string;
            };
            header?: {
                /** @description The id under which both sides log the request. Any other text is ignored. */
                "X-Openstack-Request-Id"?: components["parameters"]["RequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The report. */
            200: {
                headers: {
                    /** @description The file name. */
                    "Content-Disposition": string;
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UsageReport"];
                    "text/csv": string;
                };
            };
            400: components["responses"]["NotAsked"];
            401: components["responses"]["NoPerson"];
            403: components["responses"]["NotAllowed"];
            /** @description No filter that needs a ledger is enabled. */
            404: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            405: components["responses"]["ApiWrongMethod"];
            408: components["responses"]["ArrivedTooSlowly"];
            /** @description Keystone has no project of this name, or there are too many rows. */
            422: {
                headers: {
                    "X-Openstack-Request-Id": components["headers"]["X-Openstack-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["ApiTooManyTokens"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NotAnswered"];
            503: components["responses"]["NotNow"];
        };
    };
}
