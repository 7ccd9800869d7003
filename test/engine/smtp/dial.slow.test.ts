import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

/** Opens files until none is left, dials through a proxy, and prints the code of the error. */
const DIAL_WITHOUT_FILES = `
  import { openSync } from 'node:fs'
  import { createServer } from 'node:net'
  import { once } from 'node:events'
  import 'socks'
  import { tcpDial } from './src/engine/smtp/dial.ts'

  const proxy = createServer().listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const { port } = proxy.address()
  const dial = tcpDial({ sourceAddress: null, proxy: 'socks5://127.0.0.1:' + port })
  try {
    for (;;) openSync('/dev/null')
  } catch {}
  const target = { ip: '192.0.2.1', port: 25, host: 'mx.example' }
  await dial.connect(target, new AbortController().signal).catch(error => console.log(error.code))
  process.exit()
`

test('a process without a free file reports that, and not that its proxy is down', async () => {
  const script = 'ulimit -n 64; exec "$0" --input-type=module --eval "$1"'
  const args = ['-c', script, process.execPath, DIAL_WITHOUT_FILES]
  const { stdout } = await promisify(execFile)('sh', args)
  expect(stdout).toBe('EMFILE\n')
})
