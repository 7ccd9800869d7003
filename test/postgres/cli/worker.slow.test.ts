import { expect, test } from 'vitest'
import { ensureSetting, setIfAbsent } from '../../../src/cluster/cluster-settings.ts'
import { listMembers } from '../../../src/cluster/members.ts'
import { fingerprint } from '../../../src/db/service-secret.ts'
import { emptyFolder, runEv, withRelativePaths } from '../../support/cli.ts'
import { CANARY, cluster, SECRET } from '../../support/cluster-cli.ts'
import { ask } from '../../support/postgres-server.ts'

const BASE_URL = 'https://ev.example.com'

test('a worker registers as a member, logs its settings, and exits with 0 after SIGTERM', async () => {
  const { worker, inside } = await cluster()
  await inside(database => ensureSetting(database, 'base-url', BASE_URL))
  const args = ['--egress', 'north', '--concurrency', '7', '--log', 'debug']
  const { signal, ended, printed } = worker(args)
  await printed('"started"', 'stderr')
  const [member] = await inside(listMembers)
  expect(member).toMatchObject({ role: 'worker', egresses: ['north'] })
  signal('SIGTERM')
  const { code, stdout, stderr } = await ended
  expect([code, stdout], stderr).toEqual([0, ''])
  const lines = stderr
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
  expect(lines.find(({ message }) => message === 'started')).toMatchObject({
    egresses: 'north',
    concurrency: 7,
    baseUrl: BASE_URL,
    member: member?.id,
  })
  expect(lines.map(({ message }) => message)).toContain('stopped')
  expect(stderr).toContain('stopping: releasing claims')
  expect(stderr).not.toMatch(new RegExp(`${CANARY}|${SECRET}`))
  expect(await inside(listMembers)).toEqual([])
})

test('a worker that starts first waits for a service, and exits with 0 on a signal meanwhile', async () => {
  const { worker, inside } = await cluster()
  const first = worker()
  await first.printed('waiting for the first one', 'stderr')
  await inside(database => ensureSetting(database, 'base-url-by-itself', 'http://127.0.0.1:8080'))
  await first.printed('"started"', 'stderr')
  first.signal('SIGINT')
  expect((await first.ended).code).toBe(0)

  const empty = await cluster()
  const second = empty.worker()
  await second.printed('waiting for the first one', 'stderr')
  second.signal('SIGTERM')
  expect((await second.ended).code).toBe(0)
})

test('a service whose role cannot create the schema of the queue prints the missing grant', async () => {
  const { serve, url } = await cluster()
  const guest = `guest_${url.replace(/.*\//, '')}`
  await ask(url, `create role ${guest} login`)
  await ask(url, `grant create on schema public to ${guest}`)
  const EV_DATABASE = url.replace('//ev:', `//${guest}:`)
  const { code, stderr } = await serve('data', [], { EV_DATABASE }).ended
  expect([code, stderr]).toEqual([74, expect.stringContaining('grant create on database NAME')])
  expect(stderr).not.toContain(CANARY)
  await ask(url, `drop owned by ${guest}; drop role ${guest}`)
})

test('a worker with another secret is rejected; one without a secret runs', async () => {
  const { worker, inside } = await cluster()
  await inside(async database => {
    await setIfAbsent(database, 'secret-mark', fingerprint(SECRET))
    await setIfAbsent(database, 'base-url', BASE_URL)
  })
  const other = await worker([], { EV_SECRET: 'b'.repeat(32) }).ended
  expect(other.code).toBe(78)
  expect(other.stderr).toMatch(
    /^error: The secret in EV_SECRET is not the secret of the service.*\n$/,
  )
  const none = worker([], { EV_SECRET: '' })
  await none.printed('"started"', 'stderr')
  none.signal('SIGTERM')
  expect((await none.ended).code).toBe(0)
})

test('a worker needs a PostgreSQL database that it can reach', async () => {
  const home = emptyFolder()
  const withoutDatabase = withRelativePaths(
    await runEv(['worker', '--data-dir', 'data'], { home }),
    home,
  )
  expect(withoutDatabase.code).toBe(78)
  expect(withoutDatabase.stderr).toMatch(
    /^error: A worker needs the PostgreSQL database of "ev serve", and data can be used by one process only\. .*EV_DATABASE=postgres:.*\n$/,
  )
  const { url, run } = await cluster()
  const unreachable = await run(['worker'], { EV_DATABASE: url.replace(/:\d+\//, ':1/') })
  expect(unreachable.code).toBe(74)
  expect(unreachable.stderr).toMatch(
    /^error: The database postgres:\/\/…@127\.0\.0\.1:1\/.* cannot be used: .*connection refused.*\n$/,
  )
  expect(unreachable.stderr).not.toContain(CANARY)
})
