/** The client of the API, for programs: `blazar-enforcement/client`. */
export type { components, paths } from './api-types.ts';
export { EndpointError, type EndpointErrorKind } from './bounded-fetch.ts';
export { type ApiCall, type ApiClient, type ApiClientOptions, createApiClient } from './client.ts';
export type { ListArguments, ListInit, ListPath, Page } from './pages.ts';
