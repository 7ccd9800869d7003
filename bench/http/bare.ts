// A minimal handler: parses a body, hashes a text and reads one row. Prints its port.
import { createHash } from 'node:crypto'
import { serve } from '@hono/node-server'
import SqliteDatabase from 'better-sqlite3'
import { Hono } from 'hono'

const sqlite = new SqliteDatabase(':memory:')
sqlite.exec('create table known (hash text primary key, name text not null)')
const keep = sqlite.prepare('insert into known values (?, ?)')
const hashOf = (text: string) => createHash('sha256').update(text).digest('hex')
for (let i = 0; i < 1_000; i++) keep.run(hashOf(`key ${i}`), `name ${i}`)

const find = sqlite.prepare('select name from known where hash = ?').pluck()
const app = new Hono().post('/', async c => {
  const { key } = await c.req.json<{ key: string }>()
  return c.json({ name: find.get(hashOf(key)) ?? null })
})
serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) => console.log(port))
