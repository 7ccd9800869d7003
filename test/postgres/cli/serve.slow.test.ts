import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { listAccounts } from '../../../src/accounts/account-store.ts'
import { listKeys } from '../../../src/accounts/key-store.ts'
import { getSetting } from '../../../src/cluster/cluster-settings.ts'
import { type RunningCli, withRelativePaths } from '../../support/cli.ts'
import { CANARY, cluster, SECRET } from '../../support/cluster-cli.ts'

function terminate({ signal, ended }: RunningCli): RunningCli['ended'] {
  signal('SIGTERM')
  return ended
}

/** Stops the process and returns its log. */
async function stop(running: RunningCli): Promise<string> {
  const { code, stderr } = await terminate(running)
  expect(code, stderr).toBe(0)
  return stderr
}

test('two services that start concurrently on an empty database create one account and one key', async () => {
  const { serve, inside } = await cluster()
  const both = [serve('one', ['--log', 'debug']), serve('two', ['--log', 'debug'])]
  await Promise.all(both.map(one => one.printed('API documentation:', 'stderr')))
  const ended = await Promise.all(both.map(one => terminate(one)))
  expect(ended.map(({ code }) => code)).toEqual([0, 0])
  const keys = ended.map(({ stdout }) => stdout.trim()).filter(key => key !== '')
  expect(keys).toHaveLength(1)
  const accounts = await inside(listAccounts)
  expect(accounts).toMatchObject([{ name: 'default', operator: 1 }])
  expect(await inside(database => listKeys(database, accounts[0]?.id ?? ''))).toHaveLength(1)
  for (const { stderr } of ended) expect(stderr).not.toContain(CANARY)
})

test('two services can share a database, but not a data directory', async () => {
  const { serve, home } = await cluster()
  const first = serve('one')
  await first.printed('API documentation:', 'stderr')
  const duplicate = withRelativePaths(await serve('one').ended, home)
  expect(duplicate.code).toBe(74)
  expect(duplicate.stderr).toMatch(
    /^error: Another "ev serve" is running in one\. Services can share a database, but not a data directory\. Set another one with --data-dir\.\n$/,
  )
  const second = serve('two')
  await second.printed('API documentation:', 'stderr')
  await Promise.all([stop(first), stop(second)])
})

test('a base URL that is set applies to all services; otherwise that of the last started one does', async () => {
  const { serve, inside } = await cluster()
  const getStoredUrl = (name: 'base-url' | 'base-url-by-itself') =>
    inside(database => getSetting(database, name))
  const plain = serve('one')
  await plain.printed('API documentation:', 'stderr')
  const derivedUrl = /"baseUrl":"([^"]+)"/.exec(await stop(plain))?.[1]
  expect(await getStoredUrl('base-url-by-itself')).toBe(derivedUrl)
  expect(await getStoredUrl('base-url')).toBeNull()

  const named = serve('one', ['--base-url', 'https://ev.example.com/'])
  await named.printed('API documentation: https://ev.example.com/docs', 'stderr')
  expect(await getStoredUrl('base-url')).toBe('https://ev.example.com')
  const follower = serve('two')
  await follower.printed('API documentation: https://ev.example.com/docs', 'stderr')
  await Promise.all([stop(named), stop(follower)])

  const moved = serve('one', ['--base-url', 'https://mail.example.com'])
  await moved.printed('API documentation: https://mail.example.com/docs', 'stderr')
  expect(await stop(moved)).toContain('the base URL has changed')
  expect(await getStoredUrl('base-url')).toBe('https://mail.example.com')
})

test('rejects a service with another secret or without one, and generates none', async () => {
  const { serve, home } = await cluster()
  const first = serve('one')
  await first.printed('API documentation:', 'stderr')
  const other = await serve('two', [], { EV_SECRET: 'b'.repeat(32) }).ended
  expect(other.code).toBe(78)
  expect(other.stderr).toMatch(
    /^error: The secret in EV_SECRET is not the secret of the service that uses the database.* EV_SECRET or EV_SECRET_FILE.*\n$/,
  )
  const none = await serve('three', [], { EV_SECRET: '' }).ended
  expect(none.code).toBe(78)
  expect(none.stderr).toMatch(
    /^error: This process does not have the secret of the service that uses the database.*\n$/,
  )
  expect(existsSync(join(home, 'three/secret'))).toBe(false)
  const file = join(home, 'secret.txt')
  writeFileSync(file, `${SECRET}\n`)
  const same = serve('four', [], { EV_SECRET: '', EV_SECRET_FILE: file })
  await same.printed('API documentation:', 'stderr')
  expect((await stop(same)) + (await stop(first))).not.toMatch(new RegExp(`${SECRET}|${CANARY}`))
})
