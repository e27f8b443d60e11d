/** All routes of the API. */
import type { ApiRoute } from './route.ts';

/** By topic, each in a file of its own. */
export const API_ROUTES: readonly ApiRoute[] = [];
