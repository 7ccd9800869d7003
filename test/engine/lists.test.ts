import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createEngine } from '../../src/index.ts'
import { EvError } from '../../src/platform/error.ts'
import { createTestEngine, mail } from '../support/engine.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ev-lists-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

function file(name: string, content: string): string {
  writeFileSync(join(folder, name), content)
  return join(folder, name)
}

const isBlocked = async (home: ReturnType<typeof createTestEngine>, email: string) =>
  (await home.reason(email)) === 'blocklisted'

describe('lists', () => {
  test('combine the entries of files and of the caller', async () => {
    const blockedFile = file('blocked.txt', 'one.test\n')
    const home = createTestEngine({ engine: { blockedFile, lists: { blocked: ['two.test'] } } })
    expect(await isBlocked(home, 'ann@one.test')).toBe(true)
    expect(await isBlocked(home, 'ann@two.test')).toBe(true)
    expect(await isBlocked(home, 'ann@a.test')).toBe(false)
  })

  test('are read for all five kinds', async () => {
    const { reason } = createTestEngine({
      zone: { ...mail('a.test', '192.0.2.1'), ...mail('throw.test', '192.0.2.1') },
      engine: {
        disposableFile: file('disposable.txt', 'throw.test\na.test'),
        allowFile: file('allow.txt', 'a.test'),
        blockedFile: file('blocked.txt', 'bob@a.test'),
        spamTrapFile: file('traps.txt', 'cy@a.test'),
      },
    })
    expect(await reason('ann@throw.test')).toBe('disposable_email')
    expect(await reason('ann@a.test')).toBe('accepted_email')
    expect(await reason('bob@a.test')).toBe('blocklisted')
    expect(await reason('cy@a.test')).toBe('spam_trap')
    const roles = createTestEngine({ engine: { roleFile: file('role.txt', 'ann') } })
    expect(await roles.reason('ann@a.test')).toBe('role_account')
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
