import { describe, expect, test } from 'vitest'
import { isFault, parseAddress } from '../../src/engine/address/address.ts'
import { OperatorQueue, type PendingAddress } from '../../src/engine/operator-queue.ts'
import { ROW } from '../support/prober.ts'

const OPERATOR = { name: 'op', title: 'op', truth: 'tells' } as const

function pending(text: string, egress: string | null = null): PendingAddress {
  const address = parseAddress(text)
  if (isFault(address)) throw new Error(`${text} is no address`)
  const task = { text, address } as PendingAddress['task']
  return { task, egress, since: 0, tries: 0, refusedBy: [] }
}

function queueOf(...all: readonly PendingAddress[]): OperatorQueue {
  const queue = new OperatorQueue(OPERATOR, ROW)
  for (const one of all) queue.add(one)
  return queue
}

const textsOf = (batch: readonly PendingAddress[]) => batch.map(({ task }) => task.text)

describe('an operator queue', () => {
  test('takes the domain that waits longest first, then fills up with the next', () => {
    const mixed = queueOf(
      ...['1@a.test', '2@b.test', '3@a.test', '4@c.test'].map(text => pending(text)),
    )
    expect(textsOf(mixed.take('x', 3, true))).toEqual(['1@a.test', '3@a.test', '2@b.test'])
    expect(textsOf(mixed.take('x', 3, true))).toEqual(['4@c.test'])
    expect(mixed.isEmpty).toBe(true)
  })

  test('takes the addresses pinned to an egress first, and only for that egress', () => {
    const queue = queueOf(pending('1@a.test'), pending('2@a.test', 'x'), pending('3@a.test', 'y'))
    expect(textsOf(queue.take('x', 9, true))).toEqual(['2@a.test', '1@a.test'])
    expect(textsOf(queue.take('x', 9, true))).toEqual([])
    expect(textsOf(queue.take('y', 9, true))).toEqual(['3@a.test'])
    expect(queue.isEmpty).toBe(true)
  })

  test('takes no more than one connection allows', () => {
    const queue = queueOf(...['1', '2', '3'].map(name => pending(`${name}@a.test`, 'x')))
    queue.add(pending('4@a.test'))
    expect(textsOf(queue.take('x', 2, true))).toEqual(['1@a.test', '2@a.test'])
    expect(textsOf(queue.take('x', 2, true))).toEqual(['3@a.test', '4@a.test'])
  })

  test('counts the addresses that an egress can take', () => {
    const queue = queueOf(pending('1@a.test'), pending('2@a.test', 'x'))
    expect([queue.pendingFor('x', true), queue.pendingFor('x', false)]).toEqual([2, 1])
    expect([queue.pendingFor('y', true), queue.pendingFor('y', false)]).toEqual([1, 0])
    expect([queue.needs('x'), queue.needs('y')]).toEqual([true, false])
    expect(textsOf(queue.take('x', 9, false))).toEqual(['2@a.test'])
    expect([queue.needs('x'), queue.isEmpty]).toEqual([false, false])
  })

  test('is done when nothing is pending and no worker runs', () => {
    const queue = queueOf(pending('1@a.test', 'x'))
    expect(queue.isDone).toBe(false)
    queue.countWorker('x', 1)
    queue.take('x', 1, true)
    expect([queue.isEmpty, queue.isDone, queue.workers('x'), queue.workers('y')]).toEqual([
      ...[true, false, 1, 0],
    ])
    queue.countWorker('x', -1)
    expect(queue.isDone).toBe(true)
  })
})
