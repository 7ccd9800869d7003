import { describe, expect, test } from 'vitest'
import { isFault, parseAddress } from '../../../src/engine/address/address.ts'
import { OperatorQueue, type PendingRow } from '../../../src/engine/scheduler/operator-queue.ts'
import { ROW } from '../../support/prober.ts'

const OPERATOR = { name: 'op', title: 'op', truth: 'tells' } as const

/** Routes by MX host; the same host has the same route. */
const routes = new Map<string, { kind: 'implicit'; host: string }>()

function pending(text: string, egress: string | null = null, host = 'mx.test'): PendingRow<null> {
  const address = parseAddress(text)
  if (isFault(address)) throw new Error(`${text} is no address`)
  const route = routes.get(host) ?? { kind: 'implicit', host }
  routes.set(host, route)
  const exchangers = [{ operator: OPERATOR, route, catchAll: null }]
  const task = { text, address, route, exchangers } as unknown as PendingRow<null>['task']
  return {
    run: null,
    row: { item: null, text, history: null },
    task,
    egress,
    since: 0,
    tries: 0,
    refusedBy: [],
    faults: 0,
  }
}

/** Lets all addresses be taken at once, unless `isGathering`. */
function queueOf(...all: readonly PendingRow<null>[]): OperatorQueue<null> {
  const queue = new OperatorQueue<null>(OPERATOR, ROW)
  for (const one of all) queue.add(one, 0, false)
  return queue
}

const textsOf = (batch: readonly PendingRow<null>[]) => batch.map(({ task }) => task.text)

const options = (sizeMax: number) => ({
  takesFree: true,
  takesPartial: true,
  capacityFor: () => sizeMax,
})

describe('an operator queue', () => {
  test('takes the domain that waits longest first, then fills up with the next', () => {
    const mixed = queueOf(
      ...['1@a.test', '2@b.test', '3@a.test', '4@c.test'].map(text => pending(text)),
    )
    expect(textsOf(mixed.take('x', options(3)))).toEqual(['1@a.test', '3@a.test', '2@b.test'])
    expect(textsOf(mixed.take('x', options(3)))).toEqual(['4@c.test'])
    expect(mixed.isEmpty).toBe(true)
  })

  test('takes addresses of one set of MX hosts only', () => {
    const queue = queueOf(
      ...[pending('1@a.test', null, 'mx1.test'), pending('2@b.test', null, 'mx2.test')],
      ...[pending('3@c.test', null, 'mx1.test'), pending('4@d.test', null, 'mx2.test')],
    )
    expect(textsOf(queue.take('x', options(9)))).toEqual(['1@a.test', '3@c.test'])
    expect(textsOf(queue.take('x', options(9)))).toEqual(['2@b.test', '4@d.test'])
    expect(textsOf(queue.take('x', options(9)))).toEqual([])
  })

  test('takes the addresses pinned to an egress first, and only for that egress', () => {
    const queue = queueOf(pending('1@a.test'), pending('2@a.test', 'x'), pending('3@a.test', 'y'))
    expect(textsOf(queue.take('x', options(9)))).toEqual(['2@a.test', '1@a.test'])
    expect(textsOf(queue.take('x', options(9)))).toEqual([])
    expect(textsOf(queue.take('y', options(9)))).toEqual(['3@a.test'])
    expect(queue.isEmpty).toBe(true)
  })

  test('leaves free addresses to others if the egress may not take them', () => {
    const queue = queueOf(pending('1@a.test'), pending('2@a.test', 'x'))
    const pinnedOnly = { ...options(9), takesFree: false }
    expect(textsOf(queue.take('y', pinnedOnly))).toEqual([])
    expect(textsOf(queue.take('x', pinnedOnly))).toEqual(['2@a.test'])
    expect(textsOf(queue.take('y', options(9)))).toEqual(['1@a.test'])
  })

  test('takes no more than one connection allows', () => {
    const queue = queueOf(...['1', '2', '3'].map(name => pending(`${name}@a.test`, 'x')))
    queue.add(pending('4@a.test'), 0, false)
    expect(textsOf(queue.take('x', options(2)))).toEqual(['1@a.test', '2@a.test'])
    expect(textsOf(queue.take('x', options(2)))).toEqual(['3@a.test', '4@a.test'])
  })

  test('holds back addresses that do not fill a connection until they are ready', () => {
    const queue = new OperatorQueue<null>(OPERATOR, ROW)
    const names = Array.from({ length: ROW.recipientsPerSession - 1 }, (_, i) => `${i}@a.test`)
    const batch = queue.add(pending('0@b.test', null, 'mx2.test'), 0, true)
    for (const name of names.slice(1)) queue.add(pending(name), 0, true)
    expect(queue.hasFull).toBe(false)
    expect(textsOf(queue.take('x', options(99)))).toEqual([])
    queue.add(pending('0@a.test'), 0, true)
    expect(queue.hasFull).toBe(true)
    expect(queue.take('x', options(99))).toHaveLength(names.length)
    queue.markReady(batch)
    expect(textsOf(queue.take('x', { ...options(99), takesPartial: false }))).toEqual([])
    expect(textsOf(queue.take('x', options(99)))).toEqual(['0@b.test'])
  })

  test('takes the batch that waits longest', () => {
    const queue = new OperatorQueue<null>(OPERATOR, ROW)
    queue.add({ ...pending('1@a.test', null, 'mx1.test'), since: 5 }, 5, false)
    for (let i = 0; i < ROW.recipientsPerSession; i++)
      queue.add({ ...pending(`${i}@b.test`, null, 'mx2.test'), since: 6 }, 6, false)
    expect(textsOf(queue.take('x', options(99)))).toEqual(['1@a.test'])
  })

  test('is done when nothing is pending and no worker runs', () => {
    const queue = queueOf(pending('1@a.test', 'x'))
    expect(queue.isDone).toBe(false)
    queue.countWorker('x', 1)
    queue.take('x', options(1))
    expect([queue.isEmpty, queue.isDone, queue.workers('x'), queue.workers('y')]).toEqual([
      ...[true, false, 1, 0],
    ])
    queue.countWorker('x', -1)
    expect(queue.isDone).toBe(true)
  })
})
