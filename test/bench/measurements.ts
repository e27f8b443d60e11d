import type { MeasuredTopic, Row } from '../../bench/performance/measurements.ts';

export const ROW: Row = {
  name: 'requests',
  measured: { what: 'service', value: 9000, unit: 'per second' },
  comparedWith: { what: 'node:http', value: 15000, unit: 'per second', peer: 'Node.js 20.20.2' },
  ratio: 0.6,
  spread: { min: 0.55, max: 0.63 },
  target: { atLeast: 0.6 },
  met: true,
};

/** Measured on an idle machine. */
export const TOPIC: MeasuredTopic = {
  date: '2026-11-21 10:00 UTC',
  runs: 5,
  seconds: 600,
  load: 0.1,
  machine: {
    processor: 'AMD EPYC',
    cores: 2,
    memoryGiB: 23.5,
    kernel: '6.18.44',
    node: '20.20.2',
    postgresql: '18.4.0',
  },
  rows: [ROW],
  notes: ['One operation is one request.'],
};
