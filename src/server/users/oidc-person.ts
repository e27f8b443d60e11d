/** Who somebody is here, by the claims of an identity provider. */
import { z } from 'zod';
import { textMistake } from '../../ledger/identity.ts';
import type { OidcOptions } from './oidc-options.ts';
import { type Membership, type Person, whoOf } from './person.ts';

/** Of the ID token, and perhaps of the userinfo endpoint. */
export type Claims = Readonly<Record<string, unknown>>;

/** More are left out: nobody has so many. */
const MAX_VALUES = 10_000;
const MAX_LENGTH = 255;

const list = z.array(z.unknown());
const object = z.record(z.string(), z.unknown());

/** `undefined` = nobody here: the claims name no user, or give neither a role nor a project. */
export function oidcPerson(claims: Claims, options: OidcOptions): Person | undefined {
  const id = textAt(claims, options.user_claim);
  if (id === undefined) {
    return undefined;
  }
  const name = textAt(claims, options.name_claim) ?? id;
  const who = whoOf({ name, id });
  const base = { provenBy: 'oidc', identity: `oidc ${id}`, who, name, userId: id } as const;
  const roles = textsAt(claims, options.roles_claim);
  const has = (values: readonly string[]) => roles.some((role) => values.includes(role));
  if (has(options.operator_values)) {
    return { ...base, kind: 'operator', memberships: [] };
  }
  if (has(options.reader_values)) {
    return { ...base, kind: 'reader', memberships: [] };
  }
  const memberships = membershipsOf(textsAt(claims, options.projects_claim), options);
  return memberships.length === 0 ? undefined : { ...base, kind: 'member', memberships };
}

function membershipsOf(values: readonly string[], options: OidcOptions): readonly Membership[] {
  const { manager_values, member_values, project_ids, project_pattern } = options;
  const pattern = patternOf(project_pattern);
  const byId = new Map<string, Membership>();
  for (const value of values) {
    const { project, role } = pattern.exec(value)?.groups ?? {};
    const isManager = role !== undefined && manager_values.includes(role);
    const isMember =
      !project_pattern.includes('{role}') || (role !== undefined && member_values.includes(role));
    const isNamed = project !== undefined && Object.hasOwn(project_ids, project);
    const projectId = (isNamed ? project_ids[project] : undefined) ?? project;
    // No database would take the others.
    if (projectId !== undefined && textMistake(projectId) === undefined && (isManager || isMember)) {
      const known = byId.get(projectId);
      byId.set(projectId, {
        projectId,
        ...(isNamed && { name: project }),
        isManager: isManager || known?.isManager === true,
      });
    }
  }
  return [...byId.values()];
}

/** `/projects/{project}/{role}`, with anything but a slash for the names. */
function patternOf(pattern: string): RegExp {
  const parts = pattern.split(/(\{project\}|\{role\})/);
  const seen = new Set<string>();
  const source = parts.map((part) => {
    const name = /^\{(project|role)\}$/.exec(part)?.[1];
    if (name === undefined) {
      return part.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&');
    }
    if (seen.has(name)) {
      return `\\k<${name}>`;
    }
    seen.add(name);
    return `(?<${name}>[^/]+)`;
  });
  return new RegExp(`^${source.join('')}$`, 'u');
}

/** One text that can be recorded. An id that is a number counts as one, unless it is so large that others are read as the same. */
function textAt(claims: Claims, path: string): string | undefined {
  const found = valueAt(claims, path);
  const text = typeof found === 'number' && Number.isSafeInteger(found) ? String(found) : found;
  return typeof text === 'string' && text !== '' && textMistake(text, MAX_LENGTH) === undefined
    ? text
    : undefined;
}

/** All texts of a claim that is a text or a list. */
function textsAt(claims: Claims, path: string): readonly string[] {
  const found = valueAt(claims, path);
  const all = list.safeParse(found).data ?? [found];
  return all
    .slice(0, MAX_VALUES)
    .filter((value): value is string => typeof value === 'string' && value.length <= MAX_LENGTH);
}

/** A claim of this very name, or along the dots of it. */
function valueAt(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) {
    return claims[path];
  }
  let found: unknown = claims;
  for (const name of path.split('.')) {
    const inside = object.safeParse(found).data;
    found = inside !== undefined && Object.hasOwn(inside, name) ? inside[name] : undefined;
  }
  return found;
}
