/** The pages of budgets. Those with a path of their own come before those of one budget. */
import type { ConsolePage } from '../page.ts';
import {
  changeBudgetForm,
  changeBudgetPage,
  newBudgetForm,
  newBudgetPage,
  removeBudgetForm,
  removeBudgetPage,
} from './form-pages.tsx';
import { importForm, importPage } from './import-pages.tsx';
import { budgetHistoryPage, budgetsPage } from './list-pages.tsx';

export const BUDGET_PAGES: readonly ConsolePage[] = [
  budgetsPage,
  budgetHistoryPage,
  newBudgetPage,
  newBudgetForm,
  importPage,
  importForm,
  changeBudgetPage,
  changeBudgetForm,
  removeBudgetPage,
  removeBudgetForm,
];
