import { html } from 'hono/html'
import type { HtmlEscapedString } from 'hono/utils/html'

/** Markup whose text is escaped; made by the template `html` alone. */
export type Html = HtmlEscapedString | Promise<HtmlEscapedString>

/** No markup, for what is left out. */
export const NOTHING: Html = html``
