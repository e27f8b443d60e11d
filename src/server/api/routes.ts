/** All routes of the API. */

import { BUDGET_FILE_ROUTES } from './budgets/file-routes.ts';
import { BUDGET_REQUEST_ROUTES } from './budgets/request-routes.ts';
import { BUDGET_HISTORY_ROUTES, BUDGET_ROUTES } from './budgets/routes.ts';
import { CALENDAR_LINK_ROUTES } from './calendar-links.ts';
import { decisionRoute, decisionsRoute, projectDecisionsRoute } from './decisions.ts';
import { ESTIMATE_ROUTES } from './estimate.ts';
import { ledgerEntriesRoute, projectLeaseRoute, projectLeasesRoute } from './leases.ts';
import { projectUsageRoute } from './project-usage.ts';
import { projectRoute, projectsRoute } from './projects.ts';
import type { ApiRoute } from './route.ts';
import { usageReportRoute } from './usage-report.ts';

/** By topic, one file each. If two paths match, the first one is used. */
export const API_ROUTES: readonly ApiRoute[] = [
  projectsRoute,
  projectRoute,
  projectLeasesRoute,
  projectLeaseRoute,
  projectUsageRoute,
  usageReportRoute,
  ledgerEntriesRoute,
  ...ESTIMATE_ROUTES,
  projectDecisionsRoute,
  decisionsRoute,
  decisionRoute,
  ...CALENDAR_LINK_ROUTES,
  ...BUDGET_HISTORY_ROUTES,
  ...BUDGET_FILE_ROUTES,
  ...BUDGET_ROUTES,
  ...BUDGET_REQUEST_ROUTES,
];
