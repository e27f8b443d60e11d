/** All routes of the API. */
import { ESTIMATE } from './estimate.ts';
import { projectLeasesRoute } from './project-leases.ts';
import { projectsRoute } from './projects.ts';
import type { ApiRoute } from './route.ts';

/** By topic, each in a file of its own. */
export const API_ROUTES: readonly ApiRoute[] = [projectsRoute, projectLeasesRoute, ESTIMATE];
