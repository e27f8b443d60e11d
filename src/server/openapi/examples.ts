/** The requests of docs/reference/protocol.md, for who reads /openapi.json. */

export const createExample = {
  context: {
    user_id: 'c631173edec04bb7a0c3f7711153c06c',
    project_id: 'a0b86a98b0d343cb948e00689182efd4',
    auth_url: 'https://keystone.example.org:5000/v3',
    region_name: 'RegionOne',
  },
  lease: {
    name: 'climate-run-7',
    start_date: '2026-12-01T09:00:00',
    end_date: '2026-12-03T09:00:00',
    status: 'CREATING',
    user_id: 'c631173edec04bb7a0c3f7711153c06c',
    project_id: 'a0b86a98b0d343cb948e00689182efd4',
    before_end_date: '',
    reservations: [
      {
        resource_type: 'physical:host',
        min: 1,
        max: 2,
        hypervisor_properties: '',
        resource_properties: '["==", "$node_type", "compute_cascadelake_r"]',
        allocations: [
          {
            created_at: '2026-11-21 01:52:26.671983',
            id: '1',
            vcpus: 48,
            hypervisor_hostname: '32af5a7a-e7a3-4883-a643-828e3f63bf51',
            availability_zone: 'az1',
            node_type: 'compute_cascadelake_r',
            gpu: 'False',
          },
        ],
      },
    ],
  },
};

export const updateExample = {
  context: {
    user_id: 'c631173edec04bb7a0c3f7711153c06c',
    project_id: 'a0b86a98b0d343cb948e00689182efd4',
    auth_url: 'https://keystone.example.org:5000/v3',
    region_name: 'RegionOne',
  },
  current_lease: {
    id: '5b8f6a1e-6d3a-4e0b-8d35-0e9f4a0b2c11',
    name: 'climate-run-7',
    user_id: 'c631173edec04bb7a0c3f7711153c06c',
    project_id: 'a0b86a98b0d343cb948e00689182efd4',
    start_date: '2026-12-01T09:00:00',
    end_date: '2026-12-03T09:00:00',
    status: 'ACTIVE',
    reservations: [],
    events: [],
  },
  lease: {
    start_date: '2026-12-01T09:00:00',
    end_date: '2026-12-05T09:00:00',
    reservations: [],
  },
};

/** The lease in the form that Blazar sends when it has ended. */
export const endExample = { context: updateExample.context, lease: updateExample.current_lease };

/** As SkyPilot 0.13 sends it for `sky launch`: a JSON text that holds JSON. */
export const skypilotExample = JSON.stringify({
  task: 'name: train\nresources:\n  accelerators:\n    L4: 1\nrun: python train.py\n',
  skypilot_config: '{}\n',
  request_name: 'launch',
  request_options: { cluster_name: 'train', idle_minutes_to_autostop: null, down: false, dryrun: false },
  at_client_side: false,
  user: 'id: 0a1b2c3d\nname: lin\n',
  client_api_version: 57,
  client_version: '0.13.0',
});

/** As an API server sends it for a pod. */
export const admissionExample = {
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: {
    uid: '705ab4f5-6393-11e8-b7cc-42010a800002',
    kind: { group: '', version: 'v1', kind: 'Pod' },
    resource: { group: '', version: 'v1', resource: 'pods' },
    name: 'train',
    namespace: 'research',
    operation: 'CREATE',
    userInfo: { username: 'lin', groups: ['system:authenticated'] },
    object: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'train', namespace: 'research' },
      spec: {
        serviceAccountName: 'default',
        schedulerName: 'default-scheduler',
        containers: [{ name: 'train', image: 'registry.example.org/train:1' }],
      },
    },
    oldObject: null,
    dryRun: false,
  },
};
