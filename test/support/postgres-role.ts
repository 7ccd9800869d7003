import { randomUUID } from 'node:crypto'
import { onTestFinished } from 'vitest'
import { ask } from './postgres-server.ts'

export type PostgresRole = {
  readonly name: string
  /** The database URL with this role. */
  readonly url: string
}

/** Creates a role with default privileges on the shared server; dropped after the test. */
export async function tempRole(url: string, options = ''): Promise<PostgresRole> {
  const name = `ev_role_${randomUUID().replaceAll('-', '')}`
  await ask(url, `create role ${name} login ${options}`)
  onTestFinished(async () => {
    await ask(url, `drop owned by ${name}`)
    await ask(url, `drop role ${name}`)
  })
  return { name, url: url.replace('//ev@', `//${name}@`) }
}
