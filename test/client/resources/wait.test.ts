import { describe, expect, test } from 'vitest'
import type { Job } from '../../../src/client/client.ts'
import { ATTEMPT_MS, createScriptedClient, failureOf } from '../../support/scripted-client.ts'

const job = (status: Job['status'], processed = 0) => ({
  json: { job_id: 'job_1', status, processed_emails: processed },
})

describe('waiting for a job', () => {
  test.each(['completed', 'failed', 'cancelled'] as const)('ends when it is %s', async status => {
    const { client, asked, waits } = createScriptedClient([job(status, 3)])
    expect(await client.waitForJob('job_1')).toMatchObject({ status })
    expect([asked.length, waits]).toEqual([1, []])
  })

  test('polls immediately, and then with long polling', async () => {
    const script = [job('queued'), job('processing', 1), job('processing', 5), job('completed', 9)]
    const { client, asked } = createScriptedClient(script)
    await client.waitForJob('job_1')
    expect(asked.map(({ path }) => path)).toEqual([
      '/v1/jobs/job_1?wait=0',
      ...Array(3).fill('/v1/jobs/job_1?wait=25'),
    ])
  })

  test('polls less and less often, as a plan may allow ten requests per minute', async () => {
    const script = [...Array(9).fill(job('processing')), job('completed')]
    const { client, waits } = createScriptedClient(script)
    await client.waitForJob('job_1')
    expect(waits).toEqual([500, 750, 1_125, 1_688, 2_531, 3_797, 5_695, 8_000, 8_000])
  })

  test('reports each progress once, and the end', async () => {
    const script = [
      job('queued'),
      job('processing', 5),
      job('processing', 5),
      job('processing', 7),
      job('cancelled', 7),
    ]
    const progress: string[] = []
    await createScriptedClient(script).client.waitForJob('job_1', {
      onProgress: now => progress.push(`${now.status} ${now.processed_emails}`),
    })
    expect(progress).toEqual(['queued 0', 'processing 5', 'processing 7', 'cancelled 7'])
  })

  test('continues after transient errors', async () => {
    const { client } = createScriptedClient([
      job('processing'),
      { status: 503 },
      new TypeError('x'),
      job('completed'),
    ])
    expect(await client.waitForJob('job_1')).toMatchObject({ status: 'completed' })
  })

  test('fails if the job does not exist', async () => {
    const missing = {
      status: 404,
      json: { success: false, error: 'No such job', code: 'not_found' },
    }
    expect(
      await failureOf(createScriptedClient([missing]).client.waitForJob('job_1')),
    ).toMatchObject({
      status: 404,
    })
  })

  test('ends if its caller aborts between two polls', async () => {
    const aborting = new AbortController()
    const { client, asked } = createScriptedClient([job('processing')], {
      sleep: async ms => {
        if (ms < ATTEMPT_MS) aborting.abort('I left')
        else await new Promise(() => {})
      },
    })
    const { signal } = aborting
    expect(await failureOf(client.waitForJob('job_1', { signal }))).toBe('I left')
    expect(asked).toHaveLength(1)
  })

  test('adds the wait of the service to the timeout of each poll', async () => {
    const times: number[] = []
    const { client } = createScriptedClient([job('processing'), job('completed')], {
      timeoutMs: 7_000,
      sleep: async (ms, signal) => {
        times.push(ms)
        if (ms >= 7_000) await new Promise(done => signal?.addEventListener('abort', done))
      },
    })
    await client.waitForJob('job_1')
    expect(times).toEqual([7_000, 500, 32_000])
  })
})
