/** All pages of the console, in the order of the navigation. */

import { EDIT_BUDGET_PAGES, NEW_BUDGET_PAGES } from './budgets/form-pages.tsx';
import { IMPORT_PAGES } from './budgets/import-pages.tsx';
import { budgetHistoryPage, budgetsPage } from './budgets/list-pages.tsx';
import { ASK_PAGES, REQUEST_PAGES, requestsPage } from './budgets/request-pages.tsx';
import { CHANGE_PAGES } from './change/change-page.tsx';
import { configurationPage } from './configuration.tsx';
import { decisionPage } from './decisions/decision-page.tsx';
import { decisionsPage } from './decisions/decisions-page.tsx';
import { leasePage } from './lease/lease-page.tsx';
import { overviewPage } from './overview/overview-page.tsx';
import type { ConsolePage } from './page.ts';
import { CALENDAR_PAGES } from './project/calendar-page.tsx';
import { projectPage } from './project/project-page.tsx';
import { projectsPage } from './project/projects-page.tsx';
import { TRY_PAGES } from './try/try-page.tsx';
import { usagePage } from './usage-page.tsx';

export const CONSOLE_PAGES: readonly ConsolePage[] = [
  overviewPage,
  projectsPage,
  projectPage,
  ...CALENDAR_PAGES,
  ...TRY_PAGES,
  ...CHANGE_PAGES,
  // Fixed paths come before those with a budget id.
  budgetsPage,
  budgetHistoryPage,
  ...NEW_BUDGET_PAGES,
  requestsPage,
  ...ASK_PAGES,
  ...REQUEST_PAGES,
  ...IMPORT_PAGES,
  ...EDIT_BUDGET_PAGES,
  usagePage,
  decisionsPage,
  configurationPage,
  decisionPage,
  leasePage,
];
