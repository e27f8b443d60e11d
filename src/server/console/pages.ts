/** All pages of the console, in the order of the navigation. */
import type { ConsolePage } from './page.ts';

export const CONSOLE_PAGES: readonly ConsolePage[] = [];
