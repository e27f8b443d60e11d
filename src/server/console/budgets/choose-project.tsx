import { Account, type NameOf } from '../account.tsx';
import { WithNames } from '../known-names.tsx';
import { pathWith } from '../paths.ts';

interface ChooseProjectProps {
  readonly projects: readonly string[];
  readonly nameOf: NameOf;
}

/** For a manager of several projects: the form shows what the chosen one has. */
export function ChooseProject({ projects, nameOf }: ChooseProjectProps) {
  return (
    <WithNames nameOf={nameOf}>
      <section>
        <p>In which project?</p>
        <ul>
          {projects.map((project) => (
            <li>
              <a href={pathWith('/budgets/new', { project })}>
                <Account kind="project" id={project} />
              </a>
            </li>
          ))}
        </ul>
      </section>
    </WithNames>
  );
}
