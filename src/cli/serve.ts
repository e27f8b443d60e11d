/** `serve`: the policy service, until it is told to stop. */
import { Command } from 'commander';
import { printWarnings } from './output.ts';
import { addSourceFlags, type SourceFlags, sourcesOf } from './sources.ts';

interface ServeFlags extends SourceFlags {
  readonly host?: string;
  readonly port?: string;
}

/** A request that MaxLeaseDurationFilter has an opinion on, short enough to paste. */
const EXAMPLE_REQUEST = JSON.stringify({
  context: { user_id: 'alice', project_id: 'climate' },
  lease: { start_date: '2026-12-01T09:00:00', end_date: '2026-12-11T09:00:00', reservations: [] },
});

export function serveCommand(): Command {
  const command = new Command('serve')
    .description('Answer a Blazar that asks over HTTP (its ExternalServiceFilter), until SIGTERM or SIGINT.')
    .option('--host <host>', 'The address to listen on, over [service] host.')
    .option('--port <port>', 'The port to listen on, over [service] port.');
  return addSourceFlags(command).action(serve);
}

async function serve(flags: ServeFlags): Promise<void> {
  const { createLogger } = await import('../logger.ts');
  const { startService } = await import('../server/service.ts');
  const sources = sourcesOf(flags);
  const service = await startService(
    {
      ...sources,
      config: [
        ...(sources.config ?? []),
        ...(flags.host === undefined ? [] : [`service.host=${flags.host}`]),
        ...(flags.port === undefined ? [] : [`service.port=${flags.port}`]),
      ],
    },
    createLogger('info'),
  );
  printWarnings(service.warnings);
  const token = service.asksForToken ? " -H 'X-Auth-Token: YOUR-TOKEN'" : '';
  process.stdout.write(
    `Listening on ${service.url}\n\nAsk it for a lease of ten days:\n\n  curl -i ${service.url}/check-create -H 'Content-Type: application/json'${token} \\\n    -d '${EXAMPLE_REQUEST}'\n\n`,
  );

  await new Promise<void>((stop) => {
    process.once('SIGTERM', stop);
    process.once('SIGINT', stop);
  });
  await service.close();
}
