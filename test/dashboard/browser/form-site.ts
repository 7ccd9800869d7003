import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Stage } from './browser.ts'

/** A web site with a sign-up form that uses the script of the service. */
export type FormSite = {
  /** The page of the form; its key is one for this domain. */
  url(domain?: string): string
  close(): void
}

/** Starts the site, on another origin than the service and with a strict policy. */
export async function startFormSite(service: Pick<Stage, 'url' | 'key'>): Promise<FormSite> {
  const keys = new Map<string, string>()
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost')
    const isStyle = pathname === '/style.css'
    response.setHeader('Content-Security-Policy', policy(service.url))
    response.setHeader('Content-Type', `text/${isStyle ? 'css' : 'html'}; charset=utf-8`)
    const key = keys.get(searchParams.get('domain') ?? 'localhost') ?? ''
    response.end(isStyle ? STYLE : pathname === '/done' ? DONE : formPage(service.url, key))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  for (const domain of ['localhost', 'shop.example'])
    keys.set(domain, await createKey(service, domain))
  const { port } = server.address() as AddressInfo
  return {
    url: (domain = 'localhost') => `http://localhost:${port}/?domain=${domain}`,
    close: () => void server.close(),
  }
}

async function createKey(service: Pick<Stage, 'url' | 'key'>, domain: string): Promise<string> {
  const answer = await fetch(`${service.url}/v1/keys`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${service.key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ name: domain, publishable: true, allowed_domains: [domain] }),
  })
  return ((await answer.json()) as { data: { key: string } }).data.key
}

const policy = (service: string) =>
  `default-src 'none'; script-src ${service}; connect-src ${service}; style-src 'self'; img-src data:; form-action 'self'`

const DONE = '<!doctype html><html lang="en"><title>Done</title><h1>Signed up</h1></html>'

const formPage = (service: string, key: string) => `<!doctype html>
<html lang="en"><head><title>Sign up</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><link rel="stylesheet" href="/style.css">
<script src="${service}/form.js" data-key="${key}" defer></script></head>
<body><main><h1>Sign up</h1>
<form action="/done">
  <p><label for="plain">Email</label> <input id="plain" type="email" data-ev aria-describedby="why"></p>
  <p id="why">For the receipt.</p>
  <p><label for="strict">Work email</label> <input id="strict" type="email" data-ev="block"></p>
  <button>Sign up</button>
</form></main></body></html>`

/** The style of docs/forms.md, and that of a plain form. */
const STYLE = `
body { margin: 0; background: #f4f5f7; color: #1c1f26; font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 24rem; margin: 2rem auto; padding: 1.5rem 2rem 2rem; background: #fff; border-radius: 8px; }
h1 { margin: 0 0 1rem; font-size: 1.5rem; }
p { margin: 0 0 1rem; }
label { display: block; font-weight: 600; }
input { box-sizing: border-box; width: 100%; padding: 0.5rem; border: 1px solid #767b86; border-radius: 4px; font: inherit; }
input[aria-invalid] { border-color: #b3261e; }
form > button { padding: 0.6rem 1.2rem; border: 0; border-radius: 4px; background: #1d4ed8; color: #fff; font: inherit; }
#why { margin-top: -0.75rem; color: #555b66; font-size: 0.875rem; }
.ev-message { display: block; font-size: 0.875rem; }
.ev-message[data-class="undeliverable"] { color: #b3261e; }
.ev-suggestion { border: 0; padding: 0; background: none; color: inherit; font: inherit; text-decoration: underline; cursor: pointer; }
`
