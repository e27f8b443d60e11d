/** The budgets and leases of a project in the ledger, as a picture and in words. */
import { Account, AccountNames } from './account.tsx';
import { Budgets } from './budgets.tsx';
import type { LedgerView, ProjectView } from './ledger-view.ts';
import { Patterns } from './patterns.tsx';
import { Refused } from './refused.tsx';
import { Timeline } from './timeline.tsx';

export function Ledger({ projectId, unit, nameOf = () => undefined, shown }: LedgerView) {
  return (
    <section aria-labelledby="ledger">
      <h2 id="ledger">Budgets and leases</h2>
      <p class="hint">Budgets and leases of a project in the ledger. Times are in UTC.</p>
      <form method="get" action="/#ledger" class="inline">
        <label for="project">Project</label>
        <input
          id="project"
          name="project"
          value={projectId}
          maxLength={255}
          autocomplete="off"
          spellcheck={false}
          required
        />
        <button type="submit">Show</button>
      </form>
      {shown.kind === 'mistake' && (
        <p class="error" role="alert">
          {shown.message}
        </p>
      )}
      {shown.kind === 'unavailable' && (
        <p class="error" role="alert">
          The ledger cannot be read at the moment.
        </p>
      )}
      <AccountNames.Provider value={nameOf}>
        {shown.kind === 'projects' && <Projects projects={shown.projects} />}
        {shown.kind === 'project' && <Project projectId={projectId} unit={unit} project={shown.project} />}
      </AccountNames.Provider>
    </section>
  );
}

function Projects({ projects }: { readonly projects: readonly string[] }) {
  return projects.length === 0 ? (
    <p>No project has a budget or a lease.</p>
  ) : (
    <nav aria-label="Projects" class="projects">
      {projects.map((projectId) => (
        <a href={`/?${new URLSearchParams({ project: projectId })}#ledger`}>
          <Account kind="project" id={projectId} />
        </a>
      ))}
    </nav>
  );
}

interface ProjectProps {
  readonly projectId: string;
  readonly unit: string;
  readonly project: ProjectView;
}

function Project({ projectId, unit, project }: ProjectProps) {
  const { budgets, timeline, refused } = project;
  return (
    <>
      <Patterns />
      <p>
        <b>
          <Account kind="project" id={projectId} />
        </b>{' '}
        · <a href="/#ledger">other projects</a>
      </p>
      <h3>Budgets</h3>
      <Budgets budgets={budgets} now={timeline.now} planned={timeline.planned} unit={unit} />
      <h3>Leases</h3>
      <Timeline timeline={timeline} refused={refused} />
      {refused.length > 0 && <Refused refused={refused} />}
    </>
  );
}
