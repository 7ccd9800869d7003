import { batchCompleted } from '../../src/webhooks/event.ts'

export const KIND = 'batch.completed'

export const DATA = batchCompleted(
  {
    jobId: 'job_xyz789',
    total: 10_000,
    done: 10_000,
    deliverable: 8_400,
    risky: 300,
    undeliverable: 1_200,
    unknown: 100,
    failed: 10,
    error: null,
    metadata: {},
    previousJobId: null,
    scheduleId: null,
  },
  'https://ev.example.com',
)
