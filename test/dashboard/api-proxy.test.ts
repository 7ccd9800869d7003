import { Hono } from 'hono'
import { expect, test, vi } from 'vitest'
import { ApiProblem, proxy } from '../../src/dashboard/api.ts'
import type { Env } from '../../src/dashboard/deps.ts'

function pass(answer: Response, method = 'GET') {
  const destroy = vi.fn()
  const outgoing = { removeHeader: () => {}, headersSent: true, destroy }
  const router = new Hono<Env>().get('/', c => proxy(c, answer))
  router.onError((error, c) => c.json({ isProblem: error instanceof ApiProblem }))
  const given = Promise.resolve(
    router.fetch(new Request('https://ev.test/', { method }), { outgoing }),
  )
  return { given, destroy }
}

test('a response is passed on with its body headers only', async () => {
  const headers = {
    'Content-Type': 'text/csv',
    'Content-Disposition': 'attachment; filename="a.csv"',
    'Access-Control-Allow-Origin': '*',
    'X-Request-Id': 'req_1',
  }
  const given = await pass(new Response('a,b\r\n', { headers })).given
  expect(await given.text()).toBe('a,b\r\n')
  expect(Object.fromEntries(given.headers)).toEqual({
    'content-type': 'text/csv',
    'content-disposition': 'attachment; filename="a.csv"',
  })
})

test('a response that fails closes the connection, so a truncated file does not look complete', async () => {
  let pulls = 0
  const body = new ReadableStream({
    pull(controller) {
      if (pulls++ === 0) controller.enqueue(new TextEncoder().encode('a'))
      else controller.error(new Error('the disk is gone'))
    },
  })
  const { given, destroy } = pass(new Response(body))
  await expect((await given).text()).rejects.toThrow('the disk is gone')
  // A socket would throw the error passed to it.
  expect(destroy.mock.calls).toEqual([[]])
})

test('a client that disconnects cancels the API response', async () => {
  const ended: unknown[] = []
  const body = new ReadableStream({ cancel: reason => void ended.push(reason) })
  const { given } = pass(new Response(body))
  await (await given).body?.cancel('gone')
  expect(ended).toEqual(['gone'])
})

test('a response to HEAD, whose body nobody reads, cancels the API response', async () => {
  const cancel = vi.fn()
  const headers = { 'Content-Type': 'text/csv' }
  const given = await pass(new Response(new ReadableStream({ cancel }), { headers }), 'HEAD').given
  expect([given.status, given.headers.get('Content-Type')]).toEqual([200, 'text/csv'])
  expect(cancel).toHaveBeenCalledOnce()
})

test('an error response throws an ApiProblem', async () => {
  const refusal = Response.json({ error: 'Job not found.', code: 'not_found' }, { status: 404 })
  expect(await (await pass(refusal).given).json()).toEqual({ isProblem: true })
})
