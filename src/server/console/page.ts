/** A page of the console: rights and content. Router, authorization and navigation read the same object. */
import type { Context } from 'koa';
import type { ComponentChildren } from 'preact';
import type { Deadline } from '../../base/deadline.ts';
import type { Problem } from '../../base/errors.ts';
import type { RequestedLease } from '../../decisions/lease-record.ts';
import type { DecisionRecord } from '../../decisions/record.ts';
import type { Generation } from '../configuration/generation.ts';
import type { DecisionRecorder } from '../decisions/recorder.ts';
import type { Action, Caller } from '../users/caller.ts';
import { local } from './try/lease-form.ts';

export interface PageRequest {
  readonly caller: Caller;
  /** From the path; empty for a page without parameters. */
  readonly params: Readonly<Record<string, string>>;
  /** From the URL; of a repeated parameter, the first counts. */
  readonly query: URLSearchParams;
  /** The submitted form; empty for GET. Its `csrf` has been checked. */
  readonly form: URLSearchParams;
  /** For the hidden field `csrf` of every form that changes something. */
  readonly csrf: string;
  readonly generation: Generation;
  /** Of budgets: the option `usage_budget_unit`. */
  readonly unit: string;
  readonly requestId: string;
  readonly deadline: Deadline;
  /** Recent decisions of this process. Those of all replicas are in the store. */
  readonly recorder: DecisionRecorder;
  /** Why a newer configuration is not in use. */
  readonly problems: readonly Problem[];
  readonly isDraining: boolean;
}

export interface ShownPage {
  /** Default 200. */
  readonly status?: number;
  /** The heading of the page, and the title of its tab. */
  readonly title: string;
  readonly main: ComponentChildren;
}

/** `redirect`, after a form has changed something: a console path, optionally with query and fragment. */
export type PageAnswer = ShownPage | { readonly redirect: string };

export interface ConsolePage {
  /** A form is sent to the path of its page. */
  readonly method: 'GET' | 'POST';
  /** `/projects/{project_id}` */
  readonly path: string;
  readonly action: Action;
  /** In the navigation; `undefined` = not in it. */
  readonly label?: string;
  /** Maximum form size, in bytes. Default 16 KiB. */
  readonly formLimit?: number;
  answer(request: PageRequest): Promise<PageAnswer>;
}

const MAX_TEXT = 255;

/** A parameter of the URL, trimmed; empty = missing. */
export function queryText(query: URLSearchParams, name: string): string {
  return (query.get(name) ?? '').trim().slice(0, MAX_TEXT);
}

/** A path with parameters; empty ones are omitted. */
export function pathWith(
  path: string,
  parameters: Readonly<Record<string, string | undefined>>,
  fragment = '',
): string {
  const given = Object.entries(parameters).filter((one): one is [string, string] => !!one[1]);
  const query = String(new URLSearchParams(given));
  return `${path}${query === '' ? '' : `?${query}`}${fragment === '' ? '' : `#${fragment}`}`;
}

/** Ids may have any characters. */
export function projectPath(projectId: string): string {
  return `/projects/${encodeURIComponent(projectId)}`;
}

/** The page of a lease, by Blazar's id, or by its row if the id is unknown or would be misread. */
export function leasePath(leaseId: string | null, row?: bigint): string {
  const isPlain = leaseId !== null && !/^([.#]|$)/.test(leaseId);
  return `/leases/${encodeURIComponent(isPlain || row === undefined ? (leaseId ?? '') : `#${row}`)}`;
}

export function decisionPath(requestId: string): string {
  return `/decisions/${encodeURIComponent(requestId)}`;
}

/** `leaseId`: Blazar's. */
export function changePath(leaseId: string): string {
  return `/leases/${encodeURIComponent(leaseId)}/change`;
}

/**
 * Opens "Try a lease" with a refused lease in the form. The link names the decision, since reservations may be too
 * long for a URL. If it no longer exists when the link is followed, the other fields are still filled in.
 */
export function tryPathOf(record: DecisionRecord, asked: RequestedLease | undefined): string {
  const dates = { start: asked && local(asked.start), end: asked && local(asked.end) };
  if (record.operation.endsWith('update') && record.lease_id !== null) {
    return pathWith(changePath(record.lease_id), dates);
  }
  return pathWith('/try', {
    project: record.project_id ?? undefined,
    user: record.user_id ?? undefined,
    name: record.lease_name ?? undefined,
    ...dates,
    decision: record.request_id,
  });
}

const MAX_LENGTH = 2000;
/** Any origin: only used to check that the parsed path does not change it. */
const HERE = 'http://here.invalid';

/** The path with query and fragment, or `/` if it could lead to another site. */
export function returnPath(asked: string | null | undefined): string {
  // Browsers read a backslash as a slash, and drop controls: `/\t/elsewhere` is `//elsewhere` to them.
  if (!asked || asked.length > MAX_LENGTH || !/^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/.test(asked)) {
    return '/';
  }
  const url = URL.canParse(asked, HERE) ? new URL(asked, HERE) : undefined;
  // The login must not lead to itself. The parser may have turned `/.//elsewhere` into `//elsewhere`.
  return url?.origin === HERE && !/^\/(\/|log(in|out)(\/|$))/.test(url.pathname)
    ? url.pathname + url.search + url.hash
    : '/';
}

/** Redirects a browser, by GET. */
export function seeOther(ctx: Context, address: string): void {
  ctx.redirect(address);
  ctx.status = 303;
}
