import type { ListedProject } from '../../openstack/user-login.ts';
import { Document } from './document.tsx';
import { Text } from './text.tsx';

/** Longer lists need the name or the id of a project. */
const MAX_SHOWN = 200;

interface SwitchProps {
  readonly projects: readonly ListedProject[];
  /** Of the project that the person is in. */
  readonly current: string | undefined;
  readonly csrf: string;
  readonly error?: string | undefined;
}

/** The projects of a person, each a button that leads into it. */
export function SwitchPage({ projects, current, csrf, error }: SwitchProps) {
  const shown = projects.toSorted((one, other) => (one.name < other.name ? -1 : 1)).slice(0, MAX_SHOWN);
  return (
    <Document title="Switch project" hasScripts={false}>
      <main class="login">
        <h1>Switch project</h1>
        {error !== undefined && (
          <p class="error" role="alert">
            <Text>{error}</Text>
          </p>
        )}
        <form method="post" action="/login/project">
          <input type="hidden" name="csrf" value={csrf} />
          <ul class="choices">
            {shown.map(({ id, name }) => (
              <li>
                <button
                  type="submit"
                  name="project"
                  value={id}
                  aria-current={id === current ? 'true' : undefined}
                >
                  <Text>{name}</Text> <small class="id">{<Text>{id}</Text>}</small>
                </button>
              </li>
            ))}
          </ul>
        </form>
        {projects.length > MAX_SHOWN && (
          <p class="hint">
            {projects.length - MAX_SHOWN} more are not shown. To use one of them, log out, and log in with its
            name or id.
          </p>
        )}
        <p>
          <a href="/">Back</a>
        </p>
      </main>
    </Document>
  );
}
