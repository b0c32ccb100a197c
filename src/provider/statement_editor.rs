//! Walks through a statement and changes parts of it.
//!
//! sqlparser compiles its walk for each type of visitor, into half a megabyte of code. Here all editors share one.

use std::ops::ControlFlow;

use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{Expr, Select, TableFactor, VisitMut, VisitorMut};

/// Changes parts of a statement.
pub trait StatementEditor {
    /// Changes a `SELECT`, before its parts.
    fn select(&mut self, select: &mut Select) {
        let _ = select;
    }

    /// Changes a table, or a subquery in its place, before its parts.
    fn table(&mut self, table: &mut TableFactor) {
        let _ = table;
    }

    /// Changes an expression, before its parts.
    fn expression(&mut self, expr: &mut Expr) {
        let _ = expr;
    }

    /// Changes an expression, after its parts.
    fn expression_behind_parts(&mut self, expr: &mut Expr) {
        let _ = expr;
    }
}

/// Changes the parts of a statement, of the query that `COPY` writes, and of the statement that `EXPLAIN` has.
pub fn edit_statement(statement: &mut Statement, editor: &mut dyn StatementEditor) {
    let _: ControlFlow<()> = match statement {
        Statement::Statement(statement) => statement.visit(&mut Walk(editor)),
        Statement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => query.visit(&mut Walk(editor)),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        Statement::Explain(explain) => {
            edit_statement(&mut explain.statement, editor);
            ControlFlow::Continue(())
        }
        Statement::CreateExternalTable(_) | Statement::Reset(_) => ControlFlow::Continue(()),
    };
}

/// Changes an expression and its parts.
pub fn edit_expression(expr: &mut Expr, editor: &mut dyn StatementEditor) {
    let _: ControlFlow<()> = expr.visit(&mut Walk(editor));
}

struct Walk<'a>(&'a mut dyn StatementEditor);

impl VisitorMut for Walk<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        self.0.select(select);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        self.0.table(table);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.0.expression(expr);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.0.expression_behind_parts(expr);
        ControlFlow::Continue(())
    }
}
