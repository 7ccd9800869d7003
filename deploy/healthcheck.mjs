// Exits with 0 if ev responds on /livez, for images without curl. For a worker, pass the address of --metrics-listen.
import { get } from 'node:http'
import { get as getByTls } from 'node:https'

const { EV_LISTEN = '127.0.0.1:8080', EV_HOST = '', EV_PORT = '', EV_TLS_CERT = '' } = process.env
const watched = process.argv[2]
const listen = watched ?? EV_LISTEN
// In a container that is linked to another one named "ev", EV_PORT is a URL, which ev ignores.
const isPortSet = watched === undefined && /^\d+$/.test(EV_PORT)
const port = isPortSet ? EV_PORT : listen.slice(listen.lastIndexOf(':') + 1)
const hosts = watched === undefined && EV_HOST !== '' ? EV_HOST : listen.replace(/:\d+$/, '')
const host = hosts.includes(':') ? '::1' : '127.0.0.1'
const request = watched !== undefined || EV_TLS_CERT === '' ? get : getByTls
// The certificate is valid for the public name, not for loopback.
const options = { host, port, path: '/livez', timeout: 4_000, rejectUnauthorized: false }
const end = isAlive => process.exit(isAlive ? 0 : 1)

request(options, ({ statusCode }) => end(statusCode === 200))
  .on('error', () => end(false))
  .on('timeout', () => end(false))
