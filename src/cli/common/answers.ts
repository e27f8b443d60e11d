/** Parses the responses of a service for commands with `--endpoint`. */
import { z } from 'zod';
import type { ApiClient } from '../../client/client.ts';
import { unexpectedAnswer } from '../../client/pages.ts';
import { toInstant } from '../../lease/dates.ts';
import { type CommandNames, namesBy } from './command-names.ts';
import { UsageError } from './output.ts';

export const account = z.object({
  id: z.string(),
  name: z.string().nullable(),
  domain: z.string().nullable(),
});
export const whole = z.string().regex(/^-?\d{1,19}$/);
/** In microseconds of the epoch. */
export const time = z.string().transform((text, context) => {
  const instant = toInstant(text);
  if (instant === undefined) {
    context.addIssue({ code: 'custom', message: 'expected a time' });
    return z.NEVER;
  }
  return instant;
});

type Account = z.infer<typeof account>;

export type Owner = { readonly project: Account; readonly user: Account | null };

/** The names in the response, for output. */
export function namesOf(found: readonly Owner[]): CommandNames {
  const known = {
    project: new Map(found.map(({ project }) => [project.id, project])),
    user: new Map(found.flatMap(({ user }) => (user === null ? [] : [[user.id, user] as const]))),
  };
  const names = namesBy((kind, id) => known[kind].get(id));
  const areNamed = [...known.project.values(), ...known.user.values()].some(({ name }) => name !== null);
  return areNamed ? names : { ...names, fields: () => ({}) };
}

const named = z.looseObject({ project: account });

/**
 * The id of a project: as typed, or that of a `name@domain` that the service shows. @throws UsageError if it
 * shows none; EndpointError
 */
export async function projectIdOf(client: ApiClient, text: string): Promise<string> {
  if (!text.includes('@')) {
    return text;
  }
  for await (const one of client.items('/v1/projects', { query: { limit: 1000 } })) {
    const { id, name, domain } = understood(named, one).project;
    if (id === text || `${name}@${domain}` === text) {
      return id;
    }
  }
  throw new UsageError(`the service shows no project ${text}: expected an id, or name@domain`);
}

/** Each item of a list. @throws EndpointError */
export async function allOf<Schema extends z.ZodType>(
  item: Schema,
  found: AsyncIterable<unknown>,
): Promise<z.infer<Schema>[]> {
  const items: z.infer<Schema>[] = [];
  for await (const one of found) {
    items.push(understood(item, one));
  }
  return items;
}

/** @throws EndpointError if the response does not match the schema */
export function understood<Schema extends z.ZodType>(schema: Schema, data: unknown): z.infer<Schema> {
  const result = schema.safeParse(data);
  if (!result.success) {
    throw unexpectedAnswer();
  }
  return result.data;
}
