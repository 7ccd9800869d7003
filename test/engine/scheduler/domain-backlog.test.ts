import { expect, test } from 'vitest'
import { DomainBacklog } from '../../../src/engine/scheduler/domain-backlog.ts'

function backlogOf(...texts: readonly string[]) {
  const backlog = new DomainBacklog<{ readonly text: string }>()
  for (const text of texts) backlog.add({ text })
  return backlog
}

const take = (backlog: ReturnType<typeof backlogOf>, sizeMax: number) =>
  backlog.take(sizeMax).map(({ text }) => text)

test('texts are taken by domain, the domain that waits longest first', () => {
  const backlog = backlogOf('1@a.test', '2@b.test', '3@A.test', 'nonsense')
  backlog.release()
  expect(take(backlog, 9)).toEqual(['1@a.test', '3@A.test'])
  expect(take(backlog, 9)).toEqual(['2@b.test'])
  expect(take(backlog, 9)).toEqual(['nonsense'])
  expect([take(backlog, 9), backlog.isEmpty]).toEqual([[], true])
})

test('domains that arrive after a release wait for the next one', () => {
  const backlog = backlogOf('1@a.test')
  expect([backlog.hasReleased, take(backlog, 9)]).toEqual([false, []])
  backlog.release()
  backlog.add({ text: '2@b.test' })
  backlog.add({ text: '3@a.test' })
  expect(take(backlog, 9)).toEqual(['1@a.test', '3@a.test'])
  expect([backlog.hasReleased, take(backlog, 9), backlog.isEmpty]).toEqual([false, [], false])
  backlog.release()
  expect(take(backlog, 9)).toEqual(['2@b.test'])
})

test('a large domain takes turns with the others', () => {
  const backlog = backlogOf('1@a.test', '2@a.test', '3@a.test', '4@b.test')
  backlog.release()
  expect(take(backlog, 2)).toEqual(['1@a.test', '2@a.test'])
  expect(take(backlog, 2)).toEqual(['4@b.test'])
  expect(take(backlog, 2)).toEqual(['3@a.test'])
})

test('a value that is no text has no domain', () => {
  const backlog = backlogOf(undefined as unknown as string, 7 as unknown as string)
  backlog.release()
  expect(take(backlog, 9)).toEqual([undefined, 7])
})
