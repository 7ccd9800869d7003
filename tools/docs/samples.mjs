// Sample requests in the reference: curl, JavaScript (fetch) and Python (requests), from the examples
// of the OpenAPI document.
import { snippetz } from '@scalar/snippetz'

/** The languages of the samples: `id` is that of the tab, `target` and `client` those of snippetz. */
export const LANGUAGES = [
  { id: 'curl', name: 'curl', target: 'shell', client: 'curl' },
  { id: 'js', name: 'JavaScript', target: 'js', client: 'fetch' },
  { id: 'python', name: 'Python', target: 'python', client: 'requests' },
]

const printer = snippetz()

/**
 * Returns the sample of an operation in each language; none for requests that only email providers
 * send.
 *
 * @param {{ server: string, path: string, method: string, operation: any }} request
 */
export function renderSamples({ server, path, method, operation }) {
  if (method !== 'get' && !needsKey(operation)) return []
  const har = toHar({ server, path, method, operation })
  // The first type is the one of a request without an Accept header.
  const isJson = Object.keys(successOf(operation)?.content ?? {})[0] === 'application/json'
  return LANGUAGES.map(({ id, name, target, client }) => {
    const call = printer.print(target, client, har)
    if (call === undefined) throw new Error(`no sample for ${method} ${path} in ${name}`)
    return { id, name, text: COMPLETE[id](call, isJson) }
  })
}

const needsKey = ({ security = [] }) => security.some(scheme => 'bearer' in scheme)

/** Returns the first response with a 2xx status. */
export const successOf = ({ responses }) =>
  Object.entries(responses).find(([status]) => status.startsWith('2'))?.[1]

/** Makes a program of a call: it awaits the response and prints it. */
const COMPLETE = {
  curl: call => call,
  js(call, isJson) {
    const [form, fetching] = splitForm(call)
    return `${form}const response = await ${fetching}\nconsole.log(await response.${isJson ? 'json' : 'text'}())`
  },
  python: (call, isJson) =>
    `import requests\n\nresponse = ${call}\nprint(response.${isJson ? 'json()' : 'text'})`,
}

/** The file field that snippetz reads from a page, and the same from a disk. */
const PAGE_FILE =
  /\/\/ Select upload.*\nconst files = .*\nformData\.append\("(.+?)", new File\(\[files\[0\]\], "(.+?)", .*\);/

function splitForm(call) {
  const start = call.indexOf('fetch(')
  const form = call
    .slice(0, start)
    .replace(PAGE_FILE, "formData.append('$1', await openAsBlob('$2'), '$2')")
  const imports = form.includes('openAsBlob') ? "import { openAsBlob } from 'node:fs'\n\n" : ''
  return [imports + form.replaceAll(';\n', '\n'), call.slice(start)]
}

/** Returns the request as HAR 1.2, with the required parameters and the example of the body. */
function toHar({ server, path, method, operation }) {
  const parameters = operation.parameters ?? []
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name) => {
    return encodeURIComponent(exampleOf(parameters.find(one => one.name === name)))
  })
  const query = parameters.filter(one => one.in === 'query' && one.required)
  const body = bodyOf(operation)
  return {
    method: method.toUpperCase(),
    url: server + filled,
    httpVersion: 'HTTP/1.1',
    cookies: [],
    headersSize: -1,
    bodySize: -1,
    queryString: query.map(one => ({ name: one.name, value: String(exampleOf(one)) })),
    headers: [
      ...(needsKey(operation) ? [{ name: 'Authorization', value: 'Bearer YOUR_KEY' }] : []),
      ...(body?.mimeType === 'application/json'
        ? [{ name: 'Content-Type', value: body.mimeType }]
        : []),
    ],
    ...(body !== undefined && { postData: body }),
  }
}

/** Returns the example of a parameter that a sample needs. */
function exampleOf({ name, example, schema }) {
  const found = example ?? schema.example ?? schema.enum?.[0]
  if (found === undefined) throw new Error(`the parameter "${name}" has no example`)
  return found
}

function bodyOf({ requestBody }) {
  const [mimeType, media] = Object.entries(requestBody?.content ?? {})[0] ?? []
  if (media?.example === undefined) return undefined
  if (mimeType === 'application/json') {
    return { mimeType, text: JSON.stringify(media.example, null, 2) }
  }
  const params = Object.entries(media.example).map(([name, value]) =>
    name === 'file' ? { name, fileName: 'customers.csv' } : { name, value: String(value) },
  )
  return { mimeType, params }
}
