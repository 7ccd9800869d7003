import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { isFault, parseAddress } from '../../src/engine/address/address.ts'
import { type ListFiles, openLists } from '../../src/engine/lists.ts'
import { createEngine } from '../../src/index.ts'
import { EvError } from '../../src/platform/error.ts'
import { createTestEngine } from '../support/engine.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ev-lists-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

function file(name: string, content: string): string {
  writeFileSync(join(folder, name), content)
  return join(folder, name)
}

function planOf(given: Partial<ListFiles>): ListFiles {
  return { files: {}, entries: {}, operators: {}, ...given }
}

function flagsOf(lists: ReturnType<typeof openLists>, text: string) {
  const address = parseAddress(text)
  if (isFault(address)) throw new Error(address.message)
  return lists.classifier.of(address)
}

const operator = (hosts: string[]) => ({ hosts, title: null, truth: null })

describe('lists', () => {
  test('combine the entries of files and of the caller', () => {
    const blocked = file('blocked.txt', 'one.test\n')
    const lists = openLists(planOf({ files: { blocked }, entries: { blocked: ['two.test'] } }))
    for (const domain of ['one.test', 'two.test']) {
      expect(flagsOf(lists, `ann@${domain}`).blocked).toBe(true)
    }
    expect(flagsOf(lists, 'ann@three.test').blocked).toBe(false)
  })

  test('are read for all five kinds', () => {
    const files = {
      disposable: file('disposable.txt', 'throw.test\nkept.test'),
      allow: file('allow.txt', 'kept.test'),
      blocked: file('blocked.txt', 'ann@firm.test'),
      spamTrap: file('traps.txt', 'bob@firm.test'),
      role: file('role.txt', 'casework'),
    }
    const lists = openLists(planOf({ files }))
    expect(flagsOf(lists, 'x@throw.test').disposable).toBe(true)
    expect(flagsOf(lists, 'x@kept.test').disposable).toBe(false)
    expect(flagsOf(lists, 'ann@firm.test')).toMatchObject({ blocked: true, spamTrap: false })
    expect(flagsOf(lists, 'bob@firm.test')).toMatchObject({ blocked: false, spamTrap: true })
    expect(flagsOf(lists, 'casework@firm.test').role).toBe(true)
  })

  test('are read when opened and on each reload', () => {
    const blocked = file('blocked.txt', 'one.test\n')
    const lists = openLists(planOf({ files: { blocked }, entries: { role: ['casework'] } }))
    file('blocked.txt', 'two.test\n')
    expect(flagsOf(lists, 'ann@one.test').blocked).toBe(true)
    lists.reload()
    expect(flagsOf(lists, 'ann@one.test').blocked).toBe(false)
    expect(flagsOf(lists, 'ann@two.test').blocked).toBe(true)
    expect(flagsOf(lists, 'casework@a.test').role).toBe(true)
  })

  test('can be replaced on reload, operators too', () => {
    const lists = openLists(planOf({ operators: { acme: operator(['acme.test']) } }))
    expect(lists.operators.of('mx.acme.test').name).toBe('acme')
    const fresh = { blocked: file('other.txt', 'one.test') }
    lists.reload(planOf({ files: fresh, operators: { apex: operator(['acme.test']) } }))
    expect(lists.operators.of('mx.acme.test').name).toBe('apex')
    expect(flagsOf(lists, 'ann@one.test').blocked).toBe(true)
    // Later reloads use these sources.
    file('other.txt', 'two.test')
    lists.reload()
    expect(flagsOf(lists, 'ann@two.test').blocked).toBe(true)
    expect(lists.operators.of('mx.acme.test').name).toBe('apex')
  })

  test.each<[string, string, ListFiles['operators'], RegExp]>([
    ['a bad line', 'two.test\nfoo bar\n', {}, /blocked\.txt has "foo bar" on line 2/],
    ['a bad operator', 'two.test', { gogle: operator([]) }, /Did you mean "google"/],
  ])('all stay unchanged after %s', (_, content, operators, message) => {
    const blocked = file('blocked.txt', 'one.test')
    const plan = planOf({ files: { blocked }, operators: { acme: operator(['acme.test']) } })
    const lists = openLists(plan)
    file('blocked.txt', content)
    expect(() => lists.reload(planOf({ files: { blocked }, operators }))).toThrow(message)
    expect(flagsOf(lists, 'ann@one.test').blocked).toBe(true)
    expect(flagsOf(lists, 'ann@two.test').blocked).toBe(false)
    expect(lists.operators.of('mx.acme.test').name).toBe('acme')
    file('blocked.txt', 'two.test')
    lists.reload()
    expect(flagsOf(lists, 'ann@two.test').blocked).toBe(true)
  })
})

describe('an engine', () => {
  test('uses the lists of the last reload', async () => {
    const blockedFile = file('blocked.txt', '')
    const { engine, reason } = createTestEngine({ engine: { blockedFile } })
    expect(await reason('ann@a.test')).toBe('accepted_email')
    file('blocked.txt', 'a.test')
    expect(await reason('ann@a.test')).toBe('accepted_email')
    engine.reloadLists()
    expect(await reason('ann@a.test')).toBe('blocklisted')
    file('blocked.txt', 'nonsense')
    expect(() => engine.reloadLists()).toThrow(EvError)
    expect(await reason('ann@a.test')).toBe('blocklisted')
  })

  test('keeps entries from an iterator on reload', async () => {
    const { engine, reason } = createTestEngine({
      engine: { lists: { blocked: ['a.test'].values() } },
    })
    engine.reloadLists()
    expect(await reason('ann@a.test')).toBe('blocklisted')
  })

  test.each<[string, object, RegExp]>([
    ['an entry that is none', { blocked: ['a.test', 'foo bar'] }, /lists\.blocked has "foo bar"/],
    ['a list that is none', { block: ['a.test'] }, /no list "block"; it has disposable, allow/],
  ])('refuses %s', (_, lists, message) => {
    expect(() => createEngine({ lists })).toThrow(message)
    expect(() => createEngine({ lists })).toThrow(expect.objectContaining({ code: 'usage' }))
  })

  test('does not flag an allowed domain with the exchanger of a disposable service', async () => {
    const throwaway = {
      'b.test': { MX: [[10, 'mx.mailinator.com']] as const },
      'mx.mailinator.com': { A: ['192.0.2.2'] },
    }
    const plain = createTestEngine({ zone: throwaway })
    expect(await plain.reason('ann@b.test')).toBe('disposable_email')
    const allowing = createTestEngine({ zone: throwaway, engine: { lists: { allow: ['b.test'] } } })
    expect(await allowing.reason('ann@b.test')).toBe('accepted_email')
  })
})
