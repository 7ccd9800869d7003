import { describe, expect, test } from 'vitest'
import { emptyFolder, runEv } from '../support/cli.ts'

const ev = (home: string, ...args: string[]) =>
  runEv([...args, '--data-dir', 'data'], { home, offline: true })

const read = async (home: string, ...args: string[]) =>
  JSON.parse((await ev(home, 'audit', ...args, '--json')).stdout)

/** A data directory with an account whose plan, address and key were changed. */
async function createAudited(): Promise<string> {
  const home = emptyFolder()
  await ev(home, 'accounts', 'create', '--name', 'Shop')
  await ev(home, 'accounts', 'set-plan', 'Shop', 'starter')
  await ev(home, 'accounts', 'set-email', 'Shop', 'ops@shop.example')
  await ev(home, 'accounts', 'set-admin', 'Shop', 'on')
  await ev(home, 'keys', 'create', '--name', 'CI')
  return home
}

describe.concurrent('ev audit', { timeout: 60_000 }, () => {
  test('shows the changes made on the command line, newest first', async () => {
    const home = await createAudited()
    const shown = (await read(home)).map(({ action, changed }: Record<string, unknown>) => [
      ...[action, changed],
    ])
    expect(shown).toEqual([
      ['key.created', null],
      ['account.updated', ['admin']],
      ['account.updated', ['email']],
      ['account.updated', ['plan']],
      ['account.created', null],
    ])
    expect((await read(home, '--limit', '1'))[0]).toEqual({
      account_id: expect.stringMatching(/^acc_/),
      id: expect.stringMatching(/^aud_/),
      action: 'key.created',
      actor: 'command_line',
      key_id: null,
      person_id: null,
      person_name: null,
      session_id: null,
      ip: null,
      target_id: expect.stringMatching(/^key_/),
      target_name: 'CI',
      changed: null,
      created_at: expect.stringMatching(/Z$/),
    })
    const { stdout, stderr } = await ev(home, 'audit', '--limit', '2')
    expect(stdout).toMatch(/^TIME +ACTION +TARGET +NAME +BY +IP +CHANGED *$/m)
    expect(stdout).toMatch(/ key\.created +key_\w+ +CI +command line /)
    expect(stderr).toContain('Older entries are not shown.')
  })

  test('is filtered by action, time and account', async () => {
    const home = await createAudited()
    expect(await read(home, '--action', 'account.updated')).toHaveLength(3)
    expect(await read(home, '--since', '1h', '--account', 'Shop')).toHaveLength(5)
    expect((await ev(home, 'audit', '--account', 'Other')).code).toBe(66)
    const { code, stderr } = await ev(home, 'audit', '--action', 'key.lost')
    expect(code).toBe(64)
    expect(stderr).toContain('Unknown action "key.lost". Actions: account.created,')
    expect((await ev(home, 'audit', '--action', 'key.revoked')).stdout).toBe(
      'No entries in the audit log.\n',
    )
  })
})
