import { describe, expect, test } from 'vitest'
import type { VerifyStep } from '../../../src/client/client.ts'
import { createInProcessClient } from '../../support/in-process-client.ts'
import { createScriptedClient, failureOf, type Reply } from '../../support/scripted-client.ts'
import { createTestService } from '../../support/service.ts'

const event = (name: string, data: object) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
const LINE = { step: 'line', text: 'S: 250 Ok' }
const stream = (...texts: string[]): Reply => ({
  body: ['retry: 3000\n\n', ...texts].join(''),
  headers: { 'content-type': 'text/event-stream' },
})

describe('verifying one address with onStep', () => {
  test('reports each step, and then the result', async () => {
    const { client } = createInProcessClient(await createTestService())
    const steps: VerifyStep[] = []
    const result = await client.verify.single('ann@a.test', { onStep: step => steps.push(step) })
    expect(result).toMatchObject({ reason: 'accepted_email', class: 'deliverable' })
    expect(steps.slice(0, 3).map(({ step }) => step)).toEqual(['syntax', 'domain', 'server'])
    expect(steps).toContainEqual({ step: 'line', text: 'C: RCPT TO:<ann@a.test>' })
  })

  test('yields a result for an invalid address', async () => {
    const { client } = createInProcessClient(await createTestService())
    const onStep = () => {}
    expect(await client.verify.single('ann@gmail', { onStep })).toMatchObject({
      reason: 'invalid_email',
      did_you_mean: 'ann@gmail.com',
    })
    expect(await failureOf(client.verify.single('ann@gmail'))).toMatchObject({ status: 400 })
  })

  test('requests an event stream, and ignores its keep-alives', async () => {
    const { client, asked } = createScriptedClient([
      stream(':\n\n', event('step', LINE), event('result', { a: 1 })),
    ])
    const steps: VerifyStep[] = []
    const question = { email: 'a@a.test', force_refresh: true }
    const result = await client.verify.single(question, { onStep: step => steps.push(step) })
    expect([steps, result]).toEqual([[LINE], { a: 1 }])
    expect(asked[0]?.headers.get('accept')).toBe('text/event-stream')
    expect(asked[0]).toMatchObject({ path: '/v1/verify/single', body: question })
  })

  test('throws on refusal, and retries transient ones', async () => {
    const busy = {
      status: 503,
      json: { success: false, error: 'busy', code: 'service_unavailable' },
    }
    const { client, asked } = createScriptedClient([busy, stream(event('result', {}))])
    await client.verify.single('a@a.test', { onStep: () => {} })
    expect(asked).toHaveLength(2)
  })

  test('throws an error sent in the stream', async () => {
    const errorBody = {
      success: false,
      error: 'It failed',
      code: 'server_error',
      request_id: 'req_1',
    }
    const { client, asked } = createScriptedClient([
      stream(event('step', LINE), event('error', errorBody)),
    ])
    const error = await failureOf(client.verify.single('a@a.test', { onStep: () => {} }))
    expect(error).toMatchObject({
      name: 'EvApiError',
      message: 'It failed',
      status: 500,
      code: 'server_error',
      requestId: 'req_1',
      body: errorBody,
    })
    expect(asked).toHaveLength(1)
  })

  test('throws if the stream breaks off', async () => {
    const { client } = createScriptedClient([
      stream(event('step', LINE), event('result', {}).slice(0, -2)),
    ])
    const error = await failureOf(client.verify.single('a@a.test', { onStep: () => {} }))
    expect(error).toMatchObject({ name: 'EvConnectionError', timedOut: false })
  })

  test('throws an error of the callback', async () => {
    const { client } = createScriptedClient([stream(event('step', LINE), event('result', {}))])
    const onStep = () => {
      throw new Error('I looked away')
    }
    const error = await failureOf(client.verify.single('a@a.test', { onStep }))
    expect(error).toMatchObject({ message: 'I looked away' })
  })
})
