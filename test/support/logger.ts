import type { Logger } from '../../src/index.ts';

/** A logger that keeps its lines. */
export interface RecordingLogger extends Logger {
  readonly lines: { level: string; fields: Record<string, unknown>; message: string }[];
}

export function recordingLogger(): RecordingLogger {
  const lines: RecordingLogger['lines'] = [];
  const write =
    (level: string) =>
    (...[first, second]: unknown[]) => {
      const fields = typeof first === 'object' && first !== null ? (first as Record<string, unknown>) : {};
      lines.push({ level, fields, message: String(typeof first === 'string' ? first : second) });
    };
  return { lines, debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}
