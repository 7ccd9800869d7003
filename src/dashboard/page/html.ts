import { html } from 'hono/html'
import type { HtmlEscapedString } from 'hono/utils/html'

/** Escaped markup, created only by the `html` template tag. */
export type Html = HtmlEscapedString | Promise<HtmlEscapedString>

/** Empty markup. */
export const NOTHING: Html = html``
