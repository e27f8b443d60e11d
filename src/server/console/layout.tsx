/** The frame around a page for somebody who may see it: navigation, who they are, the heading. */
import type { ComponentChildren } from 'preact';
import { may } from '../users/access.ts';
import type { Person } from '../users/person.ts';
import { Document } from './document.tsx';
import type { ConsolePage } from './page.ts';
import { Text } from './text.tsx';

/** What the frame shows besides a page. */
export interface Frame {
  readonly person: Person;
  readonly csrf: string;
  /** All pages; the navigation has those with a label that the person may see. */
  readonly pages: readonly ConsolePage[];
  /** The path of the page, as its `path` has it. */
  readonly path: string;
}

interface LayoutProps extends Frame {
  readonly title: string;
  readonly children: ComponentChildren;
}

export function Layout({ title, person, csrf, pages, path, children }: LayoutProps) {
  return (
    <Document title={title}>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="top">
        <a class="brand" href="/">
          blazar-enforcement
        </a>
        <nav aria-label="Pages">
          <ul>
            {navigation(pages, person).map((page) => (
              <li>
                <a href={page.path} aria-current={isWithin(page.path, path) ? 'page' : undefined}>
                  {page.label}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <Account person={person} csrf={csrf} />
      </header>
      <main id="main" tabIndex={-1}>
        <div class="title">
          <h1>
            <Text>{title}</Text>
          </h1>
          {/* Scripts show it where there is something that they keep up to date. */}
          <button type="button" class="plain" data-live-switch aria-pressed="true" hidden>
            Live updates
          </button>
        </div>
        {children}
      </main>
      <p class="unseen" role="status" data-live-status />
    </Document>
  );
}

function Account({ person, csrf }: { readonly person: Person; readonly csrf: string }) {
  return (
    <div class="account">
      <span>
        <Text>{person.name}</Text> <small>{roleOf(person)}</small>
      </span>
      {person.provenBy === 'keystone' && csrf !== '' && <a href="/login/project">Switch project</a>}
      {csrf !== '' && (
        <form method="post" action="/logout">
          <input type="hidden" name="csrf" value={csrf} />
          <button type="submit" class="plain">
            Log out
          </button>
        </form>
      )}
    </div>
  );
}

/** What they are in the project of the session. */
function roleOf({ kind, memberships }: Person): string {
  return memberships.some(({ isManager }) => isManager) ? 'manager' : kind;
}

/** The pages with a label that a person may see. */
export function navigation(pages: readonly ConsolePage[], person: Person): readonly ConsolePage[] {
  return pages.filter(
    ({ method, label, action }) => method === 'GET' && label !== undefined && may(person, action),
  );
}

/** Whether a page belongs to an entry of the navigation: `/projects/{project_id}` to `/projects`. */
function isWithin(entry: string, path: string): boolean {
  return path === entry || (entry !== '/' && path.startsWith(`${entry}/`));
}
