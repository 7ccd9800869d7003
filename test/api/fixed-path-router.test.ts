import { expect, test } from 'vitest'
import { FixedPathRouter } from '../../src/api/fixed-path-router.ts'

/** A router with middleware, fixed paths and paths with a parameter beside them. */
function createRouter() {
  const router = new FixedPathRouter<string>()
  router.add('ALL', '/*', 'all')
  router.add('GET', '/webhooks/events', 'events')
  router.add('GET', '/webhooks/:id', 'one')
  router.add('POST', '/webhooks', 'create')
  router.add('POST', '/webhooks', 'handler')
  return router
}

const handlersOf = (router: FixedPathRouter<string>, method: string, path: string) =>
  (router.match(method, path)[0] as [string, object][]).map(([handler, params]) => [
    handler,
    { ...params },
  ])

test.each([
  [
    'GET',
    '/webhooks/events',
    [
      ['all', {}],
      ['events', {}],
      ['one', { id: 'events' }],
    ],
  ],
  [
    'GET',
    '/webhooks/wh_1',
    [
      ['all', {}],
      ['one', { id: 'wh_1' }],
    ],
  ],
  [
    'GET',
    '/webhooks/wh_2',
    [
      ['all', {}],
      ['one', { id: 'wh_2' }],
    ],
  ],
  [
    'POST',
    '/webhooks',
    [
      ['all', {}],
      ['create', {}],
      ['handler', {}],
    ],
  ],
  ['POST', '/webhooks/', [['all', {}]]],
  ['DELETE', '/webhooks', [['all', {}]]],
])('finds the same handlers for %s %s each time', (method, path, handlers) => {
  const router = createRouter()
  for (let time = 0; time < 3; time++) expect(handlersOf(router, method, path)).toEqual(handlers)
})

test('takes no route after the first request of a fixed path', () => {
  const router = createRouter()
  router.match('POST', '/webhooks')
  expect(() => router.add('GET', '/keys', 'keys')).toThrow('/keys')
})
