/** All pages of the console, in the order of the navigation. */
import { BUDGET_PAGES } from './budgets/pages.ts';
import { configurationPage } from './configuration.tsx';
import { decisionPage } from './decisions/decision-page.tsx';
import { decisionsPage } from './decisions/decisions-page.tsx';
import { overviewPage } from './overview/overview-page.tsx';
import type { ConsolePage } from './page.ts';
import { projectPage } from './project/project-page.tsx';
import { projectsPage } from './project/projects-page.tsx';
import { tryForm, tryPage } from './try/try-page.tsx';

export const CONSOLE_PAGES: readonly ConsolePage[] = [
  overviewPage,
  projectsPage,
  projectPage,
  tryPage,
  tryForm,
  ...BUDGET_PAGES,
  decisionsPage,
  configurationPage,
  decisionPage,
];
