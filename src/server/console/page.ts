/** A page of the console: who may see it, and what it shows. The router, the rights and the navigation read the same object. */
import type { Context } from 'koa';
import type { ComponentChildren } from 'preact';
import type { Deadline } from '../../base/deadline.ts';
import type { Problem } from '../../base/errors.ts';
import type { Generation } from '../configuration/generation.ts';
import type { DecisionRecorder } from '../decisions/recorder.ts';
import type { Action, Caller } from '../users/caller.ts';

export interface PageRequest {
  readonly caller: Caller;
  /** From the path; empty for a page without. */
  readonly params: Readonly<Record<string, string>>;
  /** From the URL; of a name that is given twice, the first counts. */
  readonly query: URLSearchParams;
  /** What a form has sent; empty for a GET. Its `csrf` is checked already. */
  readonly form: URLSearchParams;
  /** Goes as the hidden field `csrf` into every form that changes something. */
  readonly csrf: string;
  readonly generation: Generation;
  readonly requestId: string;
  readonly deadline: Deadline;
  /** What this process has decided lately. For decisions of all replicas ask the store. */
  readonly recorder: DecisionRecorder;
  /** Why a newer configuration is not in use. */
  readonly problems: readonly Problem[];
  readonly isDraining: boolean;
}

export type PageAnswer =
  | {
      /** Default 200. */
      readonly status?: number;
      /** The heading of the page, and of its tab. */
      readonly title: string;
      readonly main: ComponentChildren;
    }
  /** With 303, after a form has changed something: a path of the console, perhaps with a query and a fragment. */
  | { readonly redirect: string };

export interface ConsolePage {
  /** A form goes to the path of its page. */
  readonly method: 'GET' | 'POST';
  /** `/projects/{project_id}` */
  readonly path: string;
  readonly action: Action;
  /** In the navigation; `undefined` = it is not there. */
  readonly label?: string;
  /** The longest form, in bytes. Default 16 KiB. */
  readonly formLimit?: number;
  answer(request: PageRequest): Promise<PageAnswer>;
}

const MAX_TEXT = 255;

/** A parameter of the URL, without blanks around it; empty = there is none. */
export function queryText(query: URLSearchParams, name: string): string {
  return (query.get(name) ?? '').trim().slice(0, MAX_TEXT);
}

/** A path with parameters; those that are empty are left out. */
export function pathWith(
  path: string,
  parameters: Readonly<Record<string, string | undefined>>,
  fragment = '',
): string {
  const given = Object.entries(parameters).filter((one): one is [string, string] => !!one[1]);
  const query = String(new URLSearchParams(given));
  return `${path}${query === '' ? '' : `?${query}`}${fragment === '' ? '' : `#${fragment}`}`;
}

/** Of a project or another thing with an id of any characters. */
export function projectPath(projectId: string): string {
  return `/projects/${encodeURIComponent(projectId)}`;
}

/** The page of a lease, by Blazar's id, or by the row of the ledger where that is unknown or would be read as something else. */
export function leasePath(leaseId: string | null, row?: bigint): string {
  const isPlain = leaseId !== null && !/^([.#]|$)/.test(leaseId);
  return `/leases/${encodeURIComponent(isPlain || row === undefined ? (leaseId ?? '') : `#${row}`)}`;
}

/** The page of all decisions of a request. */
export function decisionPath(requestId: string): string {
  return `/decisions/${encodeURIComponent(requestId)}`;
}

/** The form for a change of a lease, by Blazar's id. */
export function changePath(leaseId: string): string {
  return `/leases/${encodeURIComponent(leaseId)}/change`;
}

const MAX_LENGTH = 2000;
/** Any origin will do: it must still be the same when the path has been read. */
const HERE = 'http://here.invalid';

/** The path with its query and fragment, or `/` for anything that could lead elsewhere. */
export function returnPath(asked: string | null | undefined): string {
  // Browsers read a backslash as a slash, and drop controls: `/\t/elsewhere` is `//elsewhere` to them.
  if (!asked || asked.length > MAX_LENGTH || !/^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/.test(asked)) {
    return '/';
  }
  const url = URL.canParse(asked, HERE) ? new URL(asked, HERE) : undefined;
  // The login leads to itself otherwise. The parser may have made `//elsewhere` of `/.//elsewhere`.
  return url?.origin === HERE && !/^\/(\/|log(in|out)(\/|$))/.test(url.pathname)
    ? url.pathname + url.search + url.hash
    : '/';
}

/** Leads a browser elsewhere, by a GET. */
export function seeOther(ctx: Context, address: string): void {
  ctx.redirect(address);
  ctx.status = 303;
}
