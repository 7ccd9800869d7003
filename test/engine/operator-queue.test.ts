import { describe, expect, test } from 'vitest'
import { isFault, parseAddress } from '../../src/engine/address/address.ts'
import { OperatorQueue, type PendingAddress } from '../../src/engine/operator-queue.ts'
import { ROW } from '../support/prober.ts'

const OPERATOR = { name: 'op', title: 'op', truth: 'tells' } as const

function waiting(text: string, egress: string | null = null): PendingAddress {
  const address = parseAddress(text)
  if (isFault(address)) throw new Error(`${text} is no address`)
  const task = { text, address } as PendingAddress['task']
  return { task, egress, since: 0, tries: 0, refusedBy: [] }
}

function line(...all: readonly PendingAddress[]): OperatorQueue {
  const line = new OperatorQueue(OPERATOR, ROW)
  for (const one of all) line.add(one)
  return line
}

const textsOf = (taken: readonly PendingAddress[]) => taken.map(({ task }) => task.text)

describe('an operator queue', () => {
  test('takes the domain that waits longest first, then fills up with the next', () => {
    const mixed = line(
      ...['1@a.test', '2@b.test', '3@a.test', '4@c.test'].map(text => waiting(text)),
    )
    expect(textsOf(mixed.take('x', 3, true))).toEqual(['1@a.test', '3@a.test', '2@b.test'])
    expect(textsOf(mixed.take('x', 3, true))).toEqual(['4@c.test'])
    expect(mixed.isEmpty).toBe(true)
  })

  test('takes the addresses pinned to an egress first, and only for that egress', () => {
    const own = line(waiting('1@a.test'), waiting('2@a.test', 'x'), waiting('3@a.test', 'y'))
    expect(textsOf(own.take('x', 9, true))).toEqual(['2@a.test', '1@a.test'])
    expect(textsOf(own.take('x', 9, true))).toEqual([])
    expect(textsOf(own.take('y', 9, true))).toEqual(['3@a.test'])
    expect(own.isEmpty).toBe(true)
  })

  test('takes no more than one connection allows', () => {
    const own = line(...['1', '2', '3'].map(name => waiting(`${name}@a.test`, 'x')))
    own.add(waiting('4@a.test'))
    expect(textsOf(own.take('x', 2, true))).toEqual(['1@a.test', '2@a.test'])
    expect(textsOf(own.take('x', 2, true))).toEqual(['3@a.test', '4@a.test'])
  })

  test('counts the addresses that an egress can take', () => {
    const own = line(waiting('1@a.test'), waiting('2@a.test', 'x'))
    expect([own.pendingFor('x', true), own.pendingFor('x', false)]).toEqual([2, 1])
    expect([own.pendingFor('y', true), own.pendingFor('y', false)]).toEqual([1, 0])
    expect([own.needs('x'), own.needs('y')]).toEqual([true, false])
    expect(textsOf(own.take('x', 9, false))).toEqual(['2@a.test'])
    expect([own.needs('x'), own.isEmpty]).toEqual([false, false])
  })

  test('is done when nothing is pending and no worker runs', () => {
    const own = line(waiting('1@a.test', 'x'))
    expect(own.isDone).toBe(false)
    own.countWorker('x', 1)
    own.take('x', 1, true)
    expect([own.isEmpty, own.isDone, own.workers('x'), own.workers('y')]).toEqual([
      ...[true, false, 1, 0],
    ])
    own.countWorker('x', -1)
    expect(own.isDone).toBe(true)
  })
})
