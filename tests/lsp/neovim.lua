-- neovim.lua -- tenon lsp in Neovim without a screen, with the files of editors/neovim.
--
--   nvim --headless --clean -c "luafile tests/lsp/neovim.lua"
-- Environment: TENON, TENON_ROOT, WORK.  Prints "good wrong" at its end.
local good, wrong = 0, 0
local function check(what, ok, seen)
  if ok then
    good = good + 1
  else
    wrong = wrong + 1
    print("FAIL " .. what .. ": " .. vim.inspect(seen))
  end
end

local function wait(what, condition)
  check(what, vim.wait(20000, condition, 20), "not within 20 s")
end

local function run()
  local root, work = vim.env.TENON_ROOT, vim.env.WORK
  vim.opt.runtimepath:prepend(root .. "/editors/neovim")
  vim.cmd("filetype plugin on | syntax on")
  vim.cmd("runtime! ftdetect/*.lua")
  require("tenon").command = { vim.env.TENON, "lsp" }
  local attached = 0
  require("tenon").attached = function() attached = attached + 1 end

  local file = io.open(work .. "/n.tn", "w")
  file:write("# 😀\nblock head(x, units: int) {\n    return dense(x, units)\n}\n\n",
    "model net(image: f32[1, 28, 28]) {\n    h = flatten(image)\n    return head(h, 10)\n}\n")
  file:close()
  vim.cmd("edit " .. work .. "/n.tn")
  local buffer = vim.api.nvim_get_current_buf()
  check("file type", vim.bo.filetype == "tenon", vim.bo.filetype)
  wait("attached", function() return attached == 1 end)

  local function lines() return vim.api.nvim_buf_get_lines(buffer, 0, -1, false) end
  local function set(row, text) vim.api.nvim_buf_set_lines(buffer, row, row + 1, false, { text }) end
  local function ask(method, line, column, more)
    local params = vim.tbl_extend("force", {
      textDocument = { uri = vim.uri_from_bufnr(buffer) }, position = { line = line, character = column } }, more or {})
    local answers = vim.lsp.buf_request_sync(buffer, "textDocument/" .. method, params, 10000)
    for _, answer in pairs(answers or {}) do
      return answer.result, answer.error
    end
  end

  set(6, '    h = flaten(image) |> relu(1, "😀", y)')
  wait("a message while typing", function() return #vim.diagnostic.get(buffer) >= 2 end)
  local seen = vim.diagnostic.get(buffer)
  table.sort(seen, function(a, b) return a.col < b.col end)
  local last = seen[#seen]
  check("its place", seen[1].lnum == 6 and seen[1].col == 8, seen)
  check("the column after a character of two UTF-16 units",
    last.message == "unknown name 'y'" and last.col == #'    h = flaten(image) |> relu(1, "😀", ', seen)
  local actions = ask("codeAction", 6, 8, { range = { start = { line = 6, character = 8 }, ["end"] = { line = 6, character = 8 } },
    context = { diagnostics = {} } })
  check("a repair", actions and actions[1] and actions[1].title == "Change to flatten", actions)
  vim.lsp.util.apply_workspace_edit(actions[1].edit, "utf-16")
  check("the repaired line", lines()[7]:match("^    h = flatten%(image%)"), lines()[7])
  set(6, "    h = flatten(image)")
  wait("no message", function() return #vim.diagnostic.get(buffer) == 0 end)

  local hover = ask("hover", 7, 12)
  check("hover", hover and hover.contents.value:find("(N, 784) → **(N, 10)**", 1, true), hover)
  local hints = ask("inlayHint", 0, 0, { range = { start = { line = 0, character = 0 }, ["end"] = { line = 9, character = 0 } } })
  check("shapes", hints and #hints == 3 and hints[2].label == "(N, 784)", hints)
  if vim.lsp.inlay_hint and vim.lsp.inlay_hint.get then -- Neovim 0.10
    check("shapes are switched on", vim.lsp.inlay_hint.is_enabled({ bufnr = buffer }), nil)
    vim.cmd("redraw")
    wait("shapes in the buffer", function() return #vim.lsp.inlay_hint.get({ bufnr = buffer }) == 3 end)
  end
  vim.api.nvim_win_set_cursor(0, { 8, 12 })
  vim.lsp.buf.definition()
  wait("definition", function() return vim.api.nvim_win_get_cursor(0)[1] == 2 end)
  vim.lsp.buf.rename("output")
  wait("rename", function() return lines()[8] == "    return output(h, 10)" end)
  check("the declaration has the new name", lines()[2] == "block output(x, units: int) {", lines()[2])
  local items = ask("completion", 7, 15)
  check("completion", items and #items.items > 50, items and #items.items)
  check("completion through omnifunc", vim.bo.omnifunc == "v:lua.vim.lsp.omnifunc", vim.bo.omnifunc)
  check("signature", ask("signatureHelp", 7, 18).signatures[1].label == "output(x, units: int)", nil)
  check("outline", #ask("documentSymbol", 0, 0) == 2, nil)
  set(6, "    h=flatten( image )")
  local edits = ask("formatting", 0, 0, { options = { tabSize = 4, insertSpaces = true } })
  vim.lsp.util.apply_text_edits(edits, buffer, "utf-16")
  check("formatting", lines()[7] == "    h = flatten(image)", lines()[7])

  -- A second buffer uses the same server; colours know the words of the language.
  vim.cmd("write | edit " .. root .. "/models/lenet.tn")
  wait("a second buffer", function() return attached == 2 end)
  local clients = (vim.lsp.get_clients or vim.lsp.get_active_clients)()
  check("one server", #clients == 1, #clients)
  local function color(row, text)
    local column = vim.api.nvim_buf_get_lines(0, row, row + 1, false)[1]:find(text, 1, true)
    return vim.fn.synIDattr(vim.fn.synID(row + 1, column, 1), "name")
  end
  check("colour of a comment", color(0, "LeNet") == "tenonComment", color(0, "LeNet"))
  check("colour of a keyword", color(6, "model") == "tenonDeclaration", color(6, "model"))
  check("colour of a call", color(7, "conv2d") == "tenonCall", color(7, "conv2d"))
  check("colour after a pipe", color(7, "tanh") == "tenonPiped", color(7, "tanh"))
  check("colour of a number", color(7, "20") == "tenonNumber", color(7, "20"))
end

local ok, why = pcall(run)
check("the script", ok, why)
print(good .. " " .. wrong)
io.stdout:write("\n")
vim.cmd("qall!")
