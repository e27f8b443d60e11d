/** The defaults that an API server is given for a pod. Source: RFC 6902, and Kubernetes docs, "Dynamic Admission Control". */
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import type { AdmissionAnswer } from '../../../src/kubernetes/admission/admission-review.ts';
import {
  ADMISSION,
  admissionReview,
  creating,
  DEDICATED,
  operationsOf,
  PARTS,
  patched,
  policiesForAll,
  runKubernetes,
} from '../../support/kubernetes-service.ts';
import { tlsFiles } from '../../support/tls.ts';

describe('a plain pod', () => {
  it('gets the defaults by a minimal patch', async () => {
    const { ask } = await runKubernetes(policiesForAll({ parts: PARTS }));
    const review = admissionReview('create-by-replica-set');
    const { patch, uid, answer, ...came } = await ask(review);
    expect(came).toMatchObject({ status: 200, allowed: true, message: undefined, warnings: [] });
    expect(uid).toBe('9f1c0a52-3f0e-4a7e-8d5b-6a4f2f9d1c11');
    expect(answer.headers.get('Content-Type')).toBe('application/json; charset=utf-8');
    expect(answer.headers.get('X-Enforcement-Generation')).toBe('1');
    expect(answer.json).toMatchObject({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' });
    expect([...patch].sort((a, b) => (a.path < b.path ? -1 : 1))).toEqual([
      { op: 'add', path: '/spec/nodeSelector', value: { 'kubernetes.io/arch': 'amd64' } },
      { op: 'remove', path: '/spec/preemptionPolicy' },
      { op: 'remove', path: '/spec/priority' },
      { op: 'add', path: '/spec/priorityClassName', value: 'low' },
      { op: 'replace', path: '/spec/schedulerName', value: 'batch' },
      { op: 'add', path: '/spec/tolerations/2', value: DEDICATED },
    ]);
    const { object } = patched(review, patch).request;
    const { priority: _, preemptionPolicy: __, ...spec } = review.request.object.spec;
    const tolerations = [...(spec.tolerations as object[]), DEDICATED];
    expect(object).toEqual({ ...review.request.object, spec: { ...spec, ...PARTS.default, tolerations } });
  });

  it('keeps its own labels, and gets missing ones with escaped names', async () => {
    const nodeSelector = { 'kubernetes.io/arch': 'amd64', 'a~b/c': 'd' };
    const { ask } = await runKubernetes(
      policiesForAll({ labels: { allowed: { nodeSelectors: {} }, default: { nodeSelector } } }),
    );
    const review = creating({ nodeSelector: { disk: 'ssd' } });
    const { patch } = await ask(review);
    expect(patch.map(({ path }) => path).sort()).toEqual([
      '/spec/nodeSelector/a~0b~1c',
      '/spec/nodeSelector/kubernetes.io~1arch',
    ]);
    expect(patched(review, patch).request.object.spec.nodeSelector).toEqual({ disk: 'ssd', ...nodeSelector });
  });

  it('gets an affinity place by place', async () => {
    const term = { matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] };
    const affinity = {
      nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } },
    };
    const spec = { allowed: { affinities: { podAntiAffinities: {} } }, default: { affinity } };
    const { ask } = await runKubernetes(policiesForAll({ zones: spec }));
    const apart = { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'zone' }] };
    const review = creating({ affinity: { podAntiAffinity: apart } });
    expect((await ask(review)).patch).toEqual([
      { op: 'add', path: '/spec/affinity/nodeAffinity', value: affinity.nodeAffinity },
    ]);
  });
});

it('works over TLS', async () => {
  const { options, caFile } = tlsFiles();
  const { url } = await runKubernetes(policiesForAll({ parts: PARTS }), { service: options });
  const agent = new Agent({ ca: readFileSync(caFile) });
  const review = admissionReview('create-by-replica-set');
  const answer = await new Promise<string>((resolve, reject) => {
    const headers = { 'Content-Type': 'application/json', Accept: 'application/json' };
    request(`${url}${ADMISSION}?timeout=10s`, { agent, method: 'POST', headers, servername: 'localhost' })
      .on('response', (response) => resolve(text(response)))
      .on('error', reject)
      .end(JSON.stringify(review));
  });
  const { response } = JSON.parse(answer) as AdmissionAnswer;
  expect(response.allowed).toBe(true);
  const { spec } = patched(review, operationsOf(response)).request.object;
  expect(spec).toMatchObject({ schedulerName: 'batch', priorityClassName: 'low' });
});
