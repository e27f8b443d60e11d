/** All pages of the console, in the order of the navigation. */
import { configurationPage } from './configuration.tsx';
import { decisionsPage } from './decisions/decisions-page.tsx';
import { overviewPage } from './overview/overview-page.tsx';
import type { ConsolePage } from './page.ts';

export const CONSOLE_PAGES: readonly ConsolePage[] = [overviewPage, decisionsPage, configurationPage];
