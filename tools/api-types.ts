/** Writes src/client/api-types.ts, the types of the API, from the document of the service. */
import { writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript';
import { openApiDocument } from '../src/server/openapi/document.ts';

const HEAD = '/** The types of the API. Written by `npm run client:types`; do not change it by hand. */\n';

/** The text of the file: only the parts for users and their programs. */
export async function apiTypes(): Promise<string> {
  const document = openApiDocument();
  const paths = Object.entries(document.paths).filter(([, methods]) =>
    Object.values(methods as Record<string, { readonly tags: readonly string[] }>).every(({ tags }) =>
      tags.includes('users'),
    ),
  );
  const served = { ...document, paths: Object.fromEntries(paths) } as unknown as OpenAPI3;
  return HEAD + astToString(await openapiTS(served, { silent: true, alphabetize: true }));
}

const [, started = ''] = process.argv;
if (import.meta.url === pathToFileURL(started).href) {
  writeFileSync(process.argv[2] ?? 'src/client/api-types.ts', await apiTypes());
}
