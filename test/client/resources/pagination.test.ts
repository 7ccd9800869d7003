import { describe, expect, test } from 'vitest'
import { createScriptedClient, failureOf } from '../../support/scripted-client.ts'

const page = (ids: number[], next: string | null) => ({
  json: {
    success: true,
    data: { items: ids.map(id => ({ id })), next_cursor: next, has_more: next !== null },
  },
})

describe('a paginated list', () => {
  test('is iterated to its end, a page at a time', async () => {
    const { client, asked } = createScriptedClient([page([1, 2], 'a+/='), page([3], null)])
    const seen: unknown[] = []
    for await (const { id } of client.history({ reason: 'timeout', limit: 2 })) {
      seen.push(`${id} after ${asked.length}`)
    }
    expect(seen).toEqual(['1 after 1', '2 after 1', '3 after 2'])
    expect(asked.map(({ path }) => path)).toEqual([
      '/v1/history?reason=timeout&limit=2',
      '/v1/history?reason=timeout&limit=2&cursor=a%2B%2F%3D',
    ])
  })

  test('fetches no page before it is needed', async () => {
    const { client, asked } = createScriptedClient([page([1, 2], 'a'), page([3], null)])
    for await (const { job_id } of client.jobs.list()) {
      expect(job_id).toBeUndefined()
      break
    }
    expect(asked).toHaveLength(1)
  })

  test('returns single pages, and restarts with each iteration', async () => {
    const { client, asked } = createScriptedClient([
      page([1], 'a'),
      page([2], null),
      page([1], null),
    ])
    const jobs = client.jobs.list({ status: 'completed' })
    const first = await jobs.page()
    expect(first).toMatchObject({ items: [{ id: 1 }], next_cursor: 'a', has_more: true })
    expect(await jobs.page(first.next_cursor ?? '')).toMatchObject({ items: [{ id: 2 }] })
    for await (const _ of jobs) expect(asked.at(-1)?.path).toBe('/v1/jobs?status=completed')
    expect(asked).toHaveLength(3)
  })

  test('fails if a page fails', async () => {
    const refusal = {
      status: 403,
      json: { success: false, error: 'No', code: 'insufficient_scope' },
    }
    const { client } = createScriptedClient([page([1], 'a'), refusal])
    const history = client.history()[Symbol.asyncIterator]()
    await history.next()
    expect(await failureOf(history.next())).toMatchObject({ code: 'insufficient_scope' })
  })
})
