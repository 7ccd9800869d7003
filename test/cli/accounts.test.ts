import { describe, expect, test } from 'vitest'
import { emptyFolder, runEv } from '../support/cli.ts'

const ev = (home: string, ...args: string[]) =>
  runEv(['accounts', ...args, '--data-dir', 'data'], { home, offline: true })

const read = async (home: string, ...args: string[]) =>
  JSON.parse((await ev(home, ...args, '--json')).stdout)

describe.concurrent('ev accounts', { timeout: 60_000 }, () => {
  test('creates one with an address, and one without', async () => {
    const home = emptyFolder()
    const createArgs = [
      'create',
      '--name',
      'Shop',
      '--plan',
      'free',
      '--email',
      ' Owner@Shop.Example ',
    ]
    expect(await read(home, ...createArgs)).toEqual({
      id: expect.stringMatching(/^acc_\w{16}$/),
      name: 'Shop',
      plan: 'free',
      email: 'Owner@shop.example',
      admin: false,
      action_policy: null,
      two_factor_required: false,
      created_at: expect.stringMatching(/Z$/),
    })
    expect((await ev(home, 'create', '--name', 'Other')).code).toBe(0)
    expect(await read(home, 'list')).toMatchObject([
      { name: 'Shop', email: 'Owner@shop.example', keys: 0 },
      { name: 'Other', email: null, keys: 0 },
    ])
    const { stdout } = await ev(home)
    expect(stdout).toMatch(/^ID +NAME +PLAN +EMAIL +ADMIN +KEYS +CREATED$/m)
    expect(stdout).toMatch(/ Shop +free +Owner@shop\.example +– +0 /)
    expect(stdout).toMatch(/ Other +enterprise +– +– +0 /)
  })

  test('changes or removes the address of an account', async () => {
    const home = emptyFolder()
    await ev(home, 'create', '--name', 'Shop')
    const set = await ev(home, 'set-email', 'Shop', 'owner@shop.example')
    expect(set).toMatchObject({ code: 0, stderr: '' })
    expect(set.stdout).toMatch(/^Alerts for account acc_\w+ "Shop" now go to owner@shop\.example/)
    expect(await read(home)).toMatchObject([{ email: 'owner@shop.example' }])
    const { stdout } = await ev(home, 'set-email', 'Shop', 'none')
    expect(stdout).toMatch(/^Removed the address of account .* --notify-to .* log\.$/m)
    expect(await read(home)).toMatchObject([{ email: null }])
    expect(await read(home, 'set-email', 'Shop', 'a@b.example')).toMatchObject({
      name: 'Shop',
      email: 'a@b.example',
    })
  })

  test('renames an account, unless another one has the name', async () => {
    const home = emptyFolder()
    for (const name of ['Shop', 'Other']) await ev(home, 'create', '--name', name)
    const { stdout } = await ev(home, 'set-name', 'Shop', ' Web shop ')
    expect(stdout).toMatch(/^Renamed account acc_\w+ from "Shop" to "Web shop"\.$/m)
    expect(await read(home)).toMatchObject([{ name: 'Web shop' }, { name: 'Other' }])
    expect(await ev(home, 'set-name', 'Web shop', 'Other')).toMatchObject({
      code: 64,
      stdout: '',
      stderr: 'error: Another account has the name "Other". Choose another name.\n',
    })
    expect((await ev(home, 'set-name', 'Other', ' ')).code).toBe(64)
  })

  test('rejects an invalid address, and changes nothing', async () => {
    const home = emptyFolder()
    await ev(home, 'create', '--name', 'Shop', '--email', 'owner@shop.example')
    for (const args of [
      ['set-email', 'Shop', 'owner'],
      ['create', '--name', 'Other', '--email', 'owner'],
    ]) {
      const { code, stdout, stderr } = await ev(home, ...args)
      expect([code, stdout]).toEqual([64, ''])
      expect(stderr).toBe(
        'error: The email address is "owner". There is no @: write the address as name@domain.\n',
      )
    }
    expect((await ev(home, 'set-email', 'Nobody', 'a@b.example')).code).toBe(66)
    expect(await read(home)).toMatchObject([{ name: 'Shop', email: 'owner@shop.example' }])
  })

  test('grants and revokes access to the Health page', async () => {
    const home = emptyFolder()
    for (const name of ['Shop', 'Ops']) await ev(home, 'create', '--name', name)
    const on = await ev(home, 'set-admin', 'Ops', 'on')
    expect(on).toMatchObject({ code: 0, stderr: '' })
    expect(on.stdout).toMatch(
      /^Account acc_\w+ "Ops" can now manage accounts over HTTP and open the Health page/,
    )
    expect(await read(home)).toMatchObject([
      { name: 'Shop', admin: false },
      { name: 'Ops', admin: true },
    ])
    expect((await ev(home)).stdout).toMatch(/ Ops +enterprise +– +yes +0 /)
    const { code, stderr } = await ev(home, 'set-admin', 'Ops', 'no')
    expect([code, stderr]).toEqual([
      64,
      'error: The second argument is "no"; it takes on or off.\n',
    ])
    expect(await read(home, 'set-admin', 'Ops', 'off')).toMatchObject({ admin: false })
    expect(await read(home)).toMatchObject([{ admin: false }, { admin: false }])
    expect((await ev(home, 'set-admin', 'Nobody', 'on')).code).toBe(66)
  })

  test('sets the action policy, or returns to that of the service', async () => {
    const home = emptyFolder()
    await ev(home, 'create', '--name', 'Shop')
    const set = await ev(home, 'set-policy', 'Shop', 'strict')
    expect(set).toMatchObject({ code: 0, stderr: '' })
    expect(set.stdout).toMatch(/^Account acc_\w+ "Shop" now has the action policy strict\./)
    expect(await read(home)).toMatchObject([{ name: 'Shop', action_policy: 'strict' }])
    const { code, stderr } = await ev(home, 'set-policy', 'Shop', 'careful')
    expect([code, stderr]).toEqual([
      64,
      'error: The second argument is "careful"; it takes balanced, strict, lenient or default.\n',
    ])
    expect(await read(home, 'set-policy', 'Shop', 'default')).toMatchObject({
      action_policy: null,
    })
  })

  test('lists the commands after an unknown one', async () => {
    const { code, stderr } = await ev(emptyFolder(), 'set-mail')
    expect(code).toBe(64)
    expect(stderr).toContain(
      'Unknown command "ev accounts set-mail". Available: list, create, set-name, set-plan, set-email, set-admin, set-policy.',
    )
  })
})
